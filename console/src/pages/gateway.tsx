import { useAccount } from '../app/context.ts'
import type { PageProps } from '../app/routes.tsx'
import { PageHeader } from '../components/layout.tsx'
import { NoPage, NotAllowed } from '../components/no-page.tsx'
import { LinkTabs } from '../components/tabs.tsx'
import { pathTo } from '../lib/router.ts'
import { Clients } from './gateway/clients.tsx'
import { Methods } from './gateway/methods.tsx'
import { Nodes } from './gateway/nodes.tsx'
import { RpcPlayground } from './gateway/rpc-playground.tsx'

/** The node gateway: a playground, the methods by use, and the nodes behind it. */
export function Page({ params }: PageProps) {
  const { may } = useAccount()
  const tab = params.tab ?? ''
  const tabs = [
    ['', 'Playground'],
    ['methods', 'Methods'],
    ['clients', 'WebSockets'],
    ...(may('ListNodes') ? [['nodes', 'Nodes and cache']] : []),
  ] as [string, string][]
  return (
    <>
      <PageHeader title="Gateway" about="JSON-RPC and WebSocket to the nodes, with one key." />
      <LinkTabs
        label="Parts of the gateway"
        tabs={tabs.map(([name, title]) => ({
          title,
          to: pathTo(...['gateway', name].filter(Boolean)),
          isCurrent: name === tab,
        }))}
      />
      {tab === '' && <RpcPlayground />}
      {tab === 'methods' && <Methods />}
      {tab === 'clients' && <Clients />}
      {tab === 'nodes' && (may('ListNodes') ? <Nodes /> : <NotAllowed operation="ListNodes" />)}
      {!['', 'methods', 'clients', 'nodes'].includes(tab) && <NoPage />}
    </>
  )
}
