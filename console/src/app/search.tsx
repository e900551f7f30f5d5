import { type Client, checksumProblem, type ItemOf } from '@portolan/client'
import { useEffect, useRef, useState } from 'preact/hooks'
import { Link } from '../components/link.tsx'
import { Problem } from '../components/problem.tsx'
import { SearchBox } from '../components/search-box.tsx'
import { Badge } from '../components/text.tsx'
import { chainId } from '../lib/chains.ts'
import { shorten } from '../lib/format.ts'
import { pathTo } from '../lib/router.ts'
import type { Account } from '../lib/session.ts'
import { useAccount, useApp } from './context.ts'

type Result = ItemOf<Awaited<ReturnType<Client['admin']['ListSearchResults']>>>

/** One box for addresses, hashes, ids and names on all chains. `/` focuses it. */
export function Search() {
  const account = useAccount()
  const { router } = useApp()
  const [query, setQuery] = useState('')
  const [results, setResults] = useState<readonly Result[] | undefined>()
  const [error, setError] = useState<unknown>()
  /** Enter was pressed before the results were there. */
  const isSubmitted = useRef(false)
  /** The text that the results belong to. */
  const answered = useRef('')
  const { path } = router.place.value

  const enter = (found: readonly Result[]) => {
    isSubmitted.current = false
    const [first] = found
    if (first) router.go(placeOf(account, first))
  }
  useEffect(() => {
    setResults(undefined)
    setQuery('')
  }, [path])
  useEffect(() => {
    const text = query.trim()
    setError(undefined)
    if (text.length < 2) {
      setResults(undefined)
      return
    }
    const controller = new AbortController()
    const timer = setTimeout(() => {
      account.client.admin
        .ListSearchResults({ query: text.slice(0, 200) }, { signal: controller.signal })
        .then(({ results: found }) => {
          answered.current = text
          setResults(found)
          if (isSubmitted.current) enter(found)
        })
        .catch((failure: unknown) => {
          if (!controller.signal.aborted) setError(failure)
        })
    }, 200)
    return () => {
      clearTimeout(timer)
      controller.abort()
    }
  }, [query])

  return (
    <SearchBox
      label="Search addresses, transactions, wallets and webhooks"
      placeholder="Address, hash, wallet or webhook"
      maxLength={200}
      query={query}
      onQuery={(text) => {
        // Here and not in the effect, which runs after the next frame: Enter may be faster.
        isSubmitted.current = false
        setQuery(text)
      }}
      isOpen={results !== undefined || error !== undefined}
      onClose={() => setResults(undefined)}
      onSubmit={() => {
        if (results && answered.current === query.trim()) enter(results)
        else isSubmitted.current = true
      }}
    >
      <Problem error={error} />
      {results?.length === 0 && (
        <p>{checksumProblem(query) ?? 'Nothing here has this name, address or hash.'}</p>
      )}
      {results?.map((result) => (
        <Link key={`${result.kind}${result.chain}${result.id}`} to={placeOf(account, result)}>
          <Badge tone="sea">{result.kind}</Badge>
          <span class="cell-text">{result.title || shorten(result.id, 14, 10)}</span>
          {result.chain && <span class="soft">{result.chain}</span>}
        </Link>
      ))}
    </SearchBox>
  )
}

/** The page of a result. */
function placeOf({ chains }: Account, result: Result): string {
  const chain = chains.find((one) => one.chain === result.chain && one.network === result.network)
  const id = chain ? chainId(chain) : result.chain
  switch (result.kind) {
    case 'wallet':
      return pathTo('wallets', id, result.id)
    case 'address':
      return `${pathTo('wallets', id, result.wallet_id)}?address=${encodeURIComponent(result.id)}`
    case 'transaction':
      return pathTo('transfers', id, result.id)
    case 'managed_transaction':
      return pathTo('transactions', id, result.id)
    case 'webhook':
      return pathTo('webhooks', id, result.id)
    default:
      return pathTo('organizations', result.id)
  }
}
