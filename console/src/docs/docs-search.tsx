import { useEffect, useRef, useState } from 'preact/hooks'
import { useApp } from '../app/context.ts'
import { Link } from '../components/link.tsx'
import { SearchBox } from '../components/search-box.tsx'
import { Badge } from '../components/text.tsx'
import { type Found, findInDocs, type Section } from '../lib/docs-search.ts'
import type { OperationDoc } from '../lib/reference.ts'

/** Finds operations and sections of the documents. `/` focuses it. */
export function DocsSearch({ operations }: { operations: readonly OperationDoc[] }) {
  const { router } = useApp()
  const { path } = router.place.value
  const [query, setQuery] = useState('')
  const [sections, setSections] = useState<readonly Section[] | undefined>()
  /** Enter was pressed before the words were loaded. */
  const isSubmitted = useRef(false)
  useEffect(() => setQuery(''), [path])
  // The words of all documents are loaded with the first search.
  const isSearching = query.trim().length >= 2
  useEffect(() => {
    if (isSearching && !sections)
      import('virtual:guide-search').then(
        (loaded) => setSections(loaded.default),
        () => setSections([]),
      )
  }, [isSearching])
  const found: readonly Found[] = isSearching
    ? findInDocs(query, { operations, sections: sections ?? [] })
    : []
  const enter = () => {
    isSubmitted.current = false
    if (found[0]) router.go(found[0].to)
  }
  useEffect(() => {
    if (sections && isSubmitted.current) enter()
  }, [sections])
  return (
    <SearchBox
      label="Search the documentation"
      placeholder="Search operations and guides"
      maxLength={100}
      query={query}
      onQuery={(text) => {
        isSubmitted.current = false
        setQuery(text)
      }}
      isOpen={isSearching}
      onClose={() => setQuery('')}
      onSubmit={() => {
        if (sections) enter()
        else isSubmitted.current = true
      }}
    >
      {found.length === 0 && <p>{sections ? 'Nothing has these words.' : 'Searching …'}</p>}
      {found.map(({ to, kind, title, about }) => (
        <Link key={to} to={to} onClick={() => setQuery('')}>
          <Badge tone={kind === 'operation' ? 'sea' : 'plain'}>{kind}</Badge>
          <span>{title}</span>
          <span class="soft cell-text">{about}</span>
        </Link>
      ))}
    </SearchBox>
  )
}
