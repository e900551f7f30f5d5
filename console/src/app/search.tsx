import type { Client, ItemOf } from '@portolan/client'
import { useEffect, useRef, useState } from 'preact/hooks'
import { Link } from '../components/link.tsx'
import { Problem } from '../components/problem.tsx'
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
  const box = useRef<HTMLDivElement>(null)
  const input = useRef<HTMLInputElement>(null)
  const [query, setQuery] = useState('')
  const [results, setResults] = useState<readonly Result[] | undefined>()
  const [error, setError] = useState<unknown>()
  const { path } = router.place.value

  useEffect(() => {
    const focus = (event: KeyboardEvent) => {
      const isTyping =
        event.target instanceof Element && event.target.closest('input,textarea,select')
      if (event.key !== '/' || isTyping || event.ctrlKey || event.metaKey) return
      event.preventDefault()
      input.current?.focus()
    }
    const leave = (event: MouseEvent) => {
      if (!box.current?.contains(event.target as Node)) setResults(undefined)
    }
    window.addEventListener('keydown', focus)
    window.addEventListener('mousedown', leave)
    return () => {
      window.removeEventListener('keydown', focus)
      window.removeEventListener('mousedown', leave)
    }
  }, [])
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
        .then(({ results: found }) => setResults(found))
        .catch((failure: unknown) => {
          if (!controller.signal.aborted) setError(failure)
        })
    }, 200)
    return () => {
      clearTimeout(timer)
      controller.abort()
    }
  }, [query])

  const onKey = (event: KeyboardEvent) => {
    if (event.key === 'Escape') setResults(undefined)
    const links = [...(box.current?.querySelectorAll<HTMLElement>('.search-results a') ?? [])]
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0
    if (step === 0 || links.length === 0) return
    event.preventDefault()
    const at = links.indexOf(document.activeElement as HTMLElement)
    const next = links[at + step]
    if (next) next.focus()
    else input.current?.focus()
  }
  const submit = (event: Event) => {
    event.preventDefault()
    const first = results?.[0]
    if (first) router.go(placeOf(account, first))
  }
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the arrow keys move between the elements inside
    <div class="search" ref={box} onKeyDown={onKey}>
      <search>
        <form onSubmit={submit}>
          <input
            ref={input}
            type="search"
            aria-label="Search addresses, transactions, wallets and webhooks"
            placeholder="Address, hash, wallet or webhook"
            autocomplete="off"
            spellcheck={false}
            maxLength={200}
            value={query}
            onInput={(event) => setQuery(event.currentTarget.value)}
          />
        </form>
      </search>
      {(results || error !== undefined) && (
        <div class="search-results" role="status">
          <Problem error={error} />
          {results?.length === 0 && <p>Nothing here has this name, address or hash.</p>}
          {results?.map((result) => (
            <Link key={`${result.kind}${result.chain}${result.id}`} to={placeOf(account, result)}>
              <Badge tone="sea">{result.kind}</Badge>
              <span class="cell-text">{result.title || shorten(result.id, 14, 10)}</span>
              {result.chain && <span class="soft">{result.chain}</span>}
            </Link>
          ))}
        </div>
      )}
    </div>
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
