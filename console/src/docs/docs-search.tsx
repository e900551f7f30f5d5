import { useEffect, useRef, useState } from 'preact/hooks'
import { useApp } from '../app/context.ts'
import { Link } from '../components/link.tsx'
import { Badge } from '../components/text.tsx'
import { type Found, findInDocs, type Section } from '../lib/docs-search.ts'
import type { OperationDoc } from '../lib/reference.ts'

/** Finds operations and sections of the documents. `/` focuses it. */
export function DocsSearch({ operations }: { operations: readonly OperationDoc[] }) {
  const { router } = useApp()
  const { path } = router.place.value
  const box = useRef<HTMLDivElement>(null)
  const input = useRef<HTMLInputElement>(null)
  const [query, setQuery] = useState('')
  const [sections, setSections] = useState<readonly Section[] | undefined>()
  useEffect(() => setQuery(''), [path])
  useEffect(() => {
    const focus = (event: KeyboardEvent) => {
      const isTyping =
        event.target instanceof Element && event.target.closest('input,textarea,select')
      if (event.key !== '/' || isTyping || event.ctrlKey || event.metaKey) return
      event.preventDefault()
      input.current?.focus()
    }
    window.addEventListener('keydown', focus)
    return () => window.removeEventListener('keydown', focus)
  }, [])
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
  const onKey = (event: KeyboardEvent) => {
    if (event.key === 'Escape') setQuery('')
    const links = [...(box.current?.querySelectorAll<HTMLElement>('.search-results a') ?? [])]
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0
    if (step === 0 || links.length === 0) return
    event.preventDefault()
    const next = links[links.indexOf(document.activeElement as HTMLElement) + step]
    ;(next ?? input.current)?.focus()
  }
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the arrow keys move between the elements inside
    <div class="search" ref={box} onKeyDown={onKey}>
      <search>
        <form
          onSubmit={(event) => {
            event.preventDefault()
            if (found[0]) router.go(found[0].to)
          }}
        >
          <input
            ref={input}
            type="search"
            aria-label="Search the documentation"
            placeholder="Search operations and guides"
            autocomplete="off"
            spellcheck={false}
            maxLength={100}
            value={query}
            onInput={(event) => setQuery(event.currentTarget.value)}
          />
        </form>
      </search>
      {isSearching && (
        <div class="search-results" role="status">
          {found.length === 0 && <p>{sections ? 'Nothing has these words.' : 'Searching …'}</p>}
          {found.map(({ to, kind, title, about }) => (
            <Link key={to} to={to} onClick={() => setQuery('')}>
              <Badge tone={kind === 'operation' ? 'sea' : 'plain'}>{kind}</Badge>
              <span>{title}</span>
              <span class="soft cell-text">{about}</span>
            </Link>
          ))}
        </div>
      )}
    </div>
  )
}
