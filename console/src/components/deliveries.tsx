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

/** Notifications of one transaction. */
export type FoundDeliveries = {
  rows: readonly Delivery[]
  /** There were more notifications at that time than are searched. */
  isCut: boolean
}

/** The notifications of one transaction. */
export const Deliveries = ({ chain, rows, isCut }: FoundDeliveries & { chain: Chain }) => {
  const webhooks = <Link to={pathTo('webhooks', chainId(chain))}>Webhooks</Link>
  return (
    <Panel flush title="Notifications">
      {rows.length > 0 && (
        <Table
          label="Notifications"
          rows={rows}
          keyOf={({ webhook_history_id }) => webhook_history_id}
          columns={deliveryColumns(chain)}
        />
      )}
      {rows.length === 0 && !isCut && (
        <Empty title="No webhook was notified of it.">
          <p>Webhooks are notified of what happens after they are registered. {webhooks}</p>
        </Empty>
      )}
      {isCut && (
        <Empty title="There may be more notifications.">
          <p>
            The newest {formatCount(searchedPages * pageSize)} of that day were searched; the pages
            of the webhooks have all. {webhooks}
          </p>
        </Empty>
      )}
    </Panel>
  )
}

/** How many pages of the history are searched for one transaction. */
const searchedPages = 5
const pageSize = 100

/** The notifications of a transaction. The history has no index of it, so the time bounds the search. */
export async function deliveriesOf(
  operations: Pick<Client['c'], 'ListWebhookHistories'>,
  hash: string,
  start_time: number,
  signal: AbortSignal,
): Promise<FoundDeliveries> {
  const rows: Delivery[] = []
  let page_token = ''
  for (let page = 0; page < searchedPages; page++) {
    const request = { start_time, end_time: start_time + 86_400, page_size: pageSize }
    const { webhook_histories, pagination } = await operations.ListWebhookHistories(
      { ...request, ...(page_token && { page_token }) },
      { signal },
    )
    rows.push(...webhook_histories.filter(({ data }) => transactionOf(data) === hash))
    page_token = pagination.next_page_token
    if (!page_token) break
  }
  return { rows, isCut: page_token !== '' }
}
