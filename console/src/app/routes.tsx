import type { FunctionComponent } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { Empty, PageHeader, Skeleton } from '../components/layout.tsx'
import { NoPage, NotAllowed } from '../components/no-page.tsx'
import { matchPath } from '../lib/router.ts'
import { useAccount, useApp } from './context.ts'

/** What a page is given: the parameters of its address. */
export type PageProps = { params: Readonly<Record<string, string>> }
type PageModule = { Page: FunctionComponent<PageProps> }

/** Each page is a chunk of its own; some are useless to a key that may not call an operation. */
const pages: readonly (readonly [
  pattern: string,
  load: () => Promise<PageModule>,
  needs?: string,
])[] = [
  ['', () => import('../pages/overview.tsx')],
  ['wallets', () => import('../pages/wallets.tsx')],
  ['wallets/:chain', () => import('../pages/wallets.tsx')],
  ['wallets/:chain/:wallet', () => import('../pages/wallet.tsx')],
  ['wallets/:chain/:wallet/:tab', () => import('../pages/wallet.tsx')],
  ['transfers/:chain/:transaction', () => import('../pages/transfer.tsx')],
  ['webhooks', () => import('../pages/webhooks.tsx')],
  ['webhooks/:chain', () => import('../pages/webhooks.tsx')],
  ['webhooks/:chain/:webhook', () => import('../pages/webhook.tsx')],
  ['webhooks/:chain/:webhook/:tab', () => import('../pages/webhook.tsx')],
  ['webhooks/:chain/:webhook/deliveries/:delivery', () => import('../pages/delivery.tsx')],
  ['transactions', () => import('../pages/transactions.tsx')],
  ['transactions/:chain', () => import('../pages/transactions.tsx')],
  ['transactions/:chain/:transaction', () => import('../pages/transaction.tsx')],
  ['playground', () => import('../pages/playground.tsx')],
  ['playground/:chain/:operation', () => import('../pages/playground.tsx')],
  ['gateway', () => import('../pages/gateway.tsx')],
  ['gateway/:tab', () => import('../pages/gateway.tsx')],
  ['local', () => import('../pages/local.tsx')],
  ['organizations', () => import('../pages/organizations.tsx'), 'ListOrganizations'],
  ['organizations/:organization', () => import('../pages/organization.tsx'), 'ListOrganizations'],
  ['keys', () => import('../pages/keys.tsx'), 'ListCredentials'],
  ['usage', () => import('../pages/usage.tsx')],
  ['audit', () => import('../pages/audit.tsx')],
]

/** The page of the current address. */
export function Routes() {
  const { path } = useApp().router.place.value
  const { may } = useAccount()
  for (const [pattern, load, needs] of pages) {
    const params = matchPath(pattern, path)
    if (params && needs && !may(needs))
      return (
        <>
          <PageHeader title="Not allowed" />
          <NotAllowed operation={needs} />
        </>
      )
    if (params) return <LazyPage key={pattern} load={load} params={params} />
  }
  return (
    <>
      <PageHeader title="Not found" />
      <NoPage />
    </>
  )
}

function LazyPage(props: PageProps & { load: () => Promise<PageModule> }) {
  const [page, setPage] = useState<PageModule | undefined>()
  const [error, setError] = useState<unknown>()
  useEffect(() => {
    props.load().then(setPage, setError)
  }, [])
  if (error)
    return (
      <>
        <PageHeader title="Not loaded" />
        <Empty title="A part of the console was not loaded.">
          <p>The service did not answer, or it is newer than this page.</p>
          {/* Browsers remember that a module was not there: only a new load asks again. */}
          <button type="button" class="button" onClick={() => location.reload()}>
            Load the page again
          </button>
        </Empty>
      </>
    )
  return page ? <page.Page params={props.params} /> : <Skeleton lines={8} />
}

/** Loads all pages, one at a time while nothing else is to be done: they open at once, also while the service is unreachable. */
export async function loadAhead(signal: AbortSignal): Promise<void> {
  const charts = () => import('../components/plot.ts')
  for (const load of [charts, ...pages.map(([, page]) => page)]) {
    await new Promise((resolve) => (window.requestIdleCallback ?? setTimeout)(resolve))
    if (signal.aborted) return
    // One that fails is loaded, or explained, when it is opened.
    await load().catch(() => {})
  }
}
