import type { FunctionComponent } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { Empty, PageHeader, Skeleton } from '../components/layout.tsx'
import { Link } from '../components/link.tsx'
import { Problem } from '../components/problem.tsx'
import { matchPath } from '../lib/router.ts'
import { useApp } from './context.ts'

/** What a page is given: the parameters of its address. */
export type PageProps = { params: Readonly<Record<string, string>> }
type PageModule = { Page: FunctionComponent<PageProps> }

/** Each page is a chunk of its own. */
const pages: readonly (readonly [pattern: string, load: () => Promise<PageModule>])[] = [
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
  ['organizations', () => import('../pages/organizations.tsx')],
  ['organizations/:organization', () => import('../pages/organization.tsx')],
  ['keys', () => import('../pages/keys.tsx')],
  ['usage', () => import('../pages/usage.tsx')],
  ['audit', () => import('../pages/audit.tsx')],
]

/** The page of the current address. */
export function Routes() {
  const { path } = useApp().router.place.value
  for (const [pattern, load] of pages) {
    const params = matchPath(pattern, path)
    if (params) return <LazyPage key={pattern} load={load} params={params} />
  }
  return (
    <>
      <PageHeader title="Not found" />
      <Empty title="This address has no page.">
        <Link to="">Overview</Link>
      </Empty>
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
      <Problem
        error={new Error('A part of the console was not loaded; the service may be newer.')}
        onRetry={() => location.reload()}
      />
    )
  return page ? <page.Page params={props.params} /> : <Skeleton lines={8} />
}
