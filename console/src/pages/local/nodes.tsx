import { useAccount, useApp } from '../../app/context.ts'
import { useLiveReload } from '../../app/use-live.ts'
import { Action } from '../../components/action.tsx'
import { Panel, Skeleton } from '../../components/layout.tsx'
import { Problem } from '../../components/problem.tsx'
import { Table } from '../../components/table.tsx'
import { Badge } from '../../components/text.tsx'
import { familyName } from '../../lib/chains.ts'
import { devCall } from '../../lib/dev-call.ts'
import { useResource } from '../../lib/use-resource.ts'

type LocalNode = { chain: string; is_running: boolean; can_mine: boolean }

/** The nodes of the local chains: blocks on request, and what happens while a node is stopped. */
export function LocalNodes() {
  const { baseUrl } = useApp()
  const { chains } = useAccount()
  const loaded = useResource(async () => {
    const { nodes } = await devCall(baseUrl, 'nodes', {})
    return (nodes as LocalNode[]).sort((a, b) => a.chain.localeCompare(b.chain))
  }, [])
  useLiveReload(({ type }) => type === 'node' || type === 'problem', loaded.reload)
  const kindOf = (name: string) => chains.find(({ chain }) => chain === name)?.kind ?? ''
  return (
    <Panel flush title="Nodes">
      <Problem error={loaded.error} onRetry={loaded.reload} />
      {!loaded.data && loaded.loading && <Skeleton />}
      {loaded.data && (
        <Table
          label="Local nodes"
          rows={loaded.data}
          keyOf={({ chain }) => chain}
          columns={[
            { title: 'Chain', cell: ({ chain }) => <strong>{chain}</strong> },
            { title: 'Family', hide: 'narrow', cell: ({ chain }) => familyName(kindOf(chain)) },
            {
              title: 'State',
              cell: ({ is_running }) => (
                <Badge tone={is_running ? 'good' : 'warn'}>
                  {is_running ? 'Running' : 'Stopped'}
                </Badge>
              ),
            },
            {
              title: '',
              align: 'end',
              cell: ({ chain, is_running, can_mine }) => (
                <span class="actions">
                  {is_running &&
                    can_mine &&
                    [1, 10].map((blocks) => (
                      <Action
                        key={blocks}
                        small
                        run={() => devCall(baseUrl, 'mine', { chain, blocks })}
                      >
                        Mine {blocks}
                      </Action>
                    ))}
                  <Action
                    small
                    tone={is_running ? 'danger' : 'primary'}
                    run={() => devCall(baseUrl, 'node', { chain, is_running: !is_running })}
                    onDone={loaded.reload}
                  >
                    {is_running ? 'Stop' : 'Start'}
                  </Action>
                </span>
              ),
            },
          ]}
        />
      )}
    </Panel>
  )
}
