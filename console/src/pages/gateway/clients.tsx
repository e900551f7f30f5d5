import { useAccount } from '../../app/context.ts'
import { useLiveReload } from '../../app/use-live.ts'
import { Empty, Panel, Skeleton } from '../../components/layout.tsx'
import { Problem } from '../../components/problem.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { Id, Time } from '../../components/text.tsx'
import { formatCount } from '../../lib/format.ts'
import { pathTo } from '../../lib/router.ts'
import { useResource } from '../../lib/use-resource.ts'

/** How often the list is read again while blocks arrive. */
const refreshMs = 5_000

/** The WebSockets that are open, with what they subscribe to and what they have not read yet. */
export function Clients() {
  const { client, may } = useAccount()
  const loaded = useResource((signal) => client.admin.ListWebSocketClients({}, { signal }), [])
  useLiveReload(({ type }) => type === 'head', loaded.reload, refreshMs)
  const rows = loaded.data?.websocket_clients
  type Row = NonNullable<typeof rows>[number]
  const organization: Column<Row> = {
    title: 'Organization',
    hide: 'medium',
    cell: ({ organization_id }) => (
      <Id
        value={organization_id}
        to={pathTo('organizations', organization_id)}
        label="organization_id"
      />
    ),
  }
  return (
    <Panel
      flush
      title="Open WebSockets"
      actions={
        <button
          type="button"
          class="button small"
          disabled={loaded.loading}
          onClick={loaded.reload}
        >
          Refresh
        </button>
      }
    >
      <Problem error={loaded.error} onRetry={loaded.reload} />
      {!rows && loaded.loading && <Skeleton lines={4} />}
      {rows?.length === 0 && (
        <Empty title="No WebSocket is open.">
          <p>
            A subscription in the playground opens one. Applications connect to{' '}
            <code>/c/mainnet/v1/ws</code> with their key.
          </p>
        </Empty>
      )}
      {rows && rows.length > 0 && (
        <Table
          label="Open WebSockets"
          rows={rows}
          keyOf={(row) =>
            `${row.credential_id} ${row.client} ${row.open_time} ${rows.indexOf(row)}`
          }
          columns={[
            { title: 'Client', cell: (row) => <code>{row.client}</code> },
            { title: 'Network', cell: ({ chain, network }) => `${chain} ${network}` },
            {
              title: 'Key',
              hide: 'narrow',
              cell: ({ credential_id }) => <Id value={credential_id} label="credential_id" />,
            },
            ...(may('ListOrganizations') ? [organization] : []),
            { title: 'Since', hide: 'narrow', cell: ({ open_time }) => <Time at={open_time} /> },
            {
              title: 'Subscriptions',
              cell: ({ subscriptions }) =>
                subscriptions.length === 0 ? (
                  <span class="soft">none</span>
                ) : (
                  subscriptions
                    .map(({ name, subscription_count }) =>
                      subscription_count > 1
                        ? `${name} × ${formatCount(subscription_count)}`
                        : name,
                    )
                    .join(', ')
                ),
            },
            {
              title: 'Unread bytes',
              align: 'end',
              hide: 'medium',
              cell: ({ buffered_bytes }) => formatCount(buffered_bytes),
            },
          ]}
        />
      )}
    </Panel>
  )
}
