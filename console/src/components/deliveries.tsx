import type { Client, ItemOf } from '@portolan/client'
import { useAccount } from '../app/context.ts'
import { type Chain, chainId } from '../lib/chains.ts'
import { formatConstant, formatCount } from '../lib/format.ts'
import { transactionField, transactionOf } from '../lib/records.ts'
import { pathTo } from '../lib/router.ts'
import { type PagedList, usePages } from '../lib/use-resource.ts'
import { Empty, Panel } from './layout.tsx'
import { Link } from './link.tsx'
import { type Column, PagedTable } from './table.tsx'
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
export const Deliveries = ({ chain, list }: { chain: Chain; list: PagedList<Delivery> }) => (
  <Panel flush title="Notifications">
    <PagedTable
      label="Notifications"
      list={list}
      keyOf={({ webhook_history_id }) => webhook_history_id}
      columns={deliveryColumns(chain)}
      empty={
        <Empty title="No webhook was notified of it.">
          <p>
            Webhooks are notified of what happens after they are registered.{' '}
            <Link to={pathTo('webhooks', chainId(chain))}>Webhooks</Link>
          </p>
        </Empty>
      }
    />
  </Panel>
)

/** Reads the notifications of a transaction. */
export const useDeliveries = (chain: Chain, transaction: string): PagedList<Delivery> => {
  const { on } = useAccount()
  return usePages(async (page_token, signal) => {
    const request = { ...transactionField(chain, transaction), page_size: 100 }
    const { webhook_histories, pagination } = await on(chain).ListWebhookHistories(
      { ...request, ...(page_token && { page_token }) },
      { signal },
    )
    return { items: webhook_histories, next: pagination.next_page_token }
  }, [])
}
