import { useState } from 'preact/hooks'
import { useAccount } from '../../app/context.ts'
import { Action } from '../../components/action.tsx'
import { Empty, Panel, Skeleton } from '../../components/layout.tsx'
import { OperationDialog } from '../../components/operation-form.tsx'
import { Problem } from '../../components/problem.tsx'
import { Table } from '../../components/table.tsx'
import type { Chain } from '../../lib/chains.ts'
import { useResource } from '../../lib/use-resource.ts'

/** Custom headers of the deliveries of a webhook. */
export function Headers({ chain, webhook_id }: { chain: Chain; webhook_id: string }) {
  const { on, may } = useAccount()
  const [adding, setAdding] = useState(false)
  const operations = on(chain)
  const loaded = useResource(
    (signal) => operations.ListWebhookHeaders({ webhook_id }, { signal }),
    [],
  )
  const rows = loaded.data?.webhook_headers
  return (
    <Panel
      flush
      title="Custom headers"
      actions={
        may('RegisterWebhookHeader', chain) && (
          <button type="button" class="button small" onClick={() => setAdding(true)}>
            Add a header
          </button>
        )
      }
    >
      <Problem error={loaded.error} onRetry={loaded.reload} />
      {!rows && loaded.loading && <Skeleton />}
      {rows?.length === 0 && (
        <Empty title="No custom header.">
          <p>Add one where the receiver asks for it, such as an authorization of its gateway.</p>
        </Empty>
      )}
      {rows && rows.length > 0 && (
        <Table
          label="Custom headers"
          rows={rows}
          keyOf={({ webhook_header_id }) => webhook_header_id}
          columns={[
            { title: 'Name', cell: ({ header_key }) => <code>{header_key}</code> },
            {
              title: 'Value',
              cell: ({ header_value }) => <code class="cell-text">{header_value}</code>,
            },
            {
              title: '',
              align: 'end',
              cell: ({ webhook_header_id }) =>
                may('RemoveWebhookHeader', chain) && (
                  <Action
                    small
                    tone="danger"
                    run={() => operations.RemoveWebhookHeader({ webhook_header_id })}
                    onDone={loaded.reload}
                  >
                    Remove
                  </Action>
                ),
            },
          ]}
        />
      )}
      {adding && (
        <OperationDialog
          title="Add a header"
          submit="Add"
          on={chain}
          operation="RegisterWebhookHeader"
          known={{ webhook_id }}
          fixed={['webhook_id']}
          run={async (request) => {
            await operations.RegisterWebhookHeader(
              request as Parameters<typeof operations.RegisterWebhookHeader>[0],
            )
            setAdding(false)
            loaded.reload()
          }}
          onClose={() => setAdding(false)}
        />
      )}
    </Panel>
  )
}
