import type { Client, ItemOf } from '@portolan/client'
import { type Chain, chainId } from '../lib/chains.ts'
import { formatConstant, formatCount } from '../lib/format.ts'
import { transactionOf } from '../lib/records.ts'
import { pathTo } from '../lib/router.ts'
import { Empty, Panel } from './layout.tsx'
import { Link } from './link.tsx'
import { type Column, Table } from './table.tsx'
import { Badge, Id, Time } from './text.tsx'

/** A notification and how its delivery went. */
export type Delivery = ItemOf<Awaited<ReturnType<Client['c']['ListWebhookHistories']>>>

const tones: Readonly<Record<string, 'good' | 'bad' | 'warn' | 'sea'>> = {
  WEBHOOK_STATUS_COMPLETED: 'good',
  WEBHOOK_STATUS_FAILED: 'bad',
  WEBHOOK_STATUS_ON_HOLD: 'warn',
  WEBHOOK_STATUS_IN_PROGRESS: 'sea',
}

/** The state of a delivery; one that is in progress after an attempt has failed at least once. */
export const DeliveryState = ({
  delivery: { webhook_status: status, delivery_count },
}: {
  delivery: Pick<Delivery, 'webhook_status' | 'delivery_count'>
}) =>
  status === 'WEBHOOK_STATUS_IN_PROGRESS' && delivery_count > 0 ? (
    <Badge tone="warn">Retrying</Badge>
  ) : (
    <Badge tone={tones[status] ?? 'plain'}>{formatConstant(status, 'WEBHOOK_STATUS_')}</Badge>
  )

/** What a notification is about, in a few words. */
function Subject({ delivery }: { delivery: Delivery }) {
  const data = delivery.data as {
    test?: boolean
    transaction_hash?: string
    transaction_digest?: string
    transfers?: readonly unknown[]
    transaction?: { transaction_id: string }
  }
  if (data.test) return <span>Test</span>
  if (data.transaction) return <Id value={data.transaction.transaction_id} label="transaction_id" />
  return <Id value={transactionOf(data)} label="transaction" />
}

/** The columns of a list of deliveries. */
export const deliveryColumns = (chain: Chain): Column<Delivery>[] => [
  {
    title: 'Delivery',
    cell: ({ webhook_id, webhook_history_id }) => (
      <Link to={pathTo('webhooks', chainId(chain), webhook_id, 'deliveries', webhook_history_id)}>
        <code>{webhook_history_id.slice(0, 8)}</code>
      </Link>
    ),
  },
  { title: 'State', cell: (delivery) => <DeliveryState delivery={delivery} /> },
  { title: 'About', hide: 'narrow', cell: (delivery) => <Subject delivery={delivery} /> },
  {
    title: 'Attempts',
    align: 'end',
    cell: ({ delivery_count }) => formatCount(delivery_count),
  },
  {
    title: 'Last attempt',
    hide: 'narrow',
    cell: ({ delivery_time }) => <Time at={delivery_time} none="not yet" />,
  },
]

/** The notifications of one transaction. */
export const Deliveries = (props: { chain: Chain; rows: readonly Delivery[] }) => (
  <Panel flush title="Notifications">
    {props.rows.length > 0 ? (
      <Table
        label="Notifications"
        rows={props.rows}
        keyOf={({ webhook_history_id }) => webhook_history_id}
        columns={deliveryColumns(props.chain)}
      />
    ) : (
      <Empty title="No webhook was notified of it.">
        <p>
          Webhooks are notified of what happens after they are registered.{' '}
          <Link to={pathTo('webhooks', chainId(props.chain))}>Webhooks</Link>
        </p>
      </Empty>
    )}
  </Panel>
)

/** How many pages of the history are searched for one transaction. */
const searchedPages = 5

/** The notifications of a transaction. The history has no index of it, so the time bounds the search. */
export async function deliveriesOf(
  operations: Pick<Client['c'], 'ListWebhookHistories'>,
  hash: string,
  start_time: number,
  signal: AbortSignal,
): Promise<Delivery[]> {
  const found: Delivery[] = []
  let page_token = ''
  for (let page = 0; page < searchedPages; page++) {
    const request = { start_time, end_time: start_time + 86_400, page_size: 100 }
    const { webhook_histories, pagination } = await operations.ListWebhookHistories(
      { ...request, ...(page_token && { page_token }) },
      { signal },
    )
    found.push(...webhook_histories.filter(({ data }) => transactionOf(data) === hash))
    page_token = pagination.next_page_token
    if (!page_token) break
  }
  return found
}
