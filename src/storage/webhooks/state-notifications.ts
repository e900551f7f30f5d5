import { notificationTypes } from '../../contract/records/states.ts'
import type { Db } from '../pg/database.ts'
import { type ManagedTransactionRow, toTransactionRecord } from '../transactions/record.ts'
import { findPendingOrganizations } from './event-queues.ts'
import { type FanOutLimits, usualFanOut } from './fan-out-limits.ts'
import { findWebhooks, queueNotifications } from './notifications.ts'
import { insertStateEvents } from './state-events.ts'

type Options = {
  /** Above these the notifications of an organization are written later. */
  limits?: FanOutLimits | undefined
  /** Called before webhooks are locked, with the transactions whose notifications are written at once. */
  lock?: (atOnce: readonly ManagedTransactionRow[]) => Promise<void>
}

/**
 * Notifies the webhooks of a wallet of state changes of managed transactions (docs/decisions/webhooks.md).
 * To be called once, last in the database transaction that changes them, with the rows as they are
 * then: it locks the webhooks until that ends. Where an organization has many webhooks and changes, it
 * stores the changes, and `workers/webhooks/state-fan-out.ts` writes the notifications; while some of an
 * organization wait, all that follow wait behind them. Returns how many notifications were written and
 * whether some are left.
 */
export const notifyOfStates = async (
  trx: Db,
  transactions: readonly ManagedTransactionRow[],
  now: Date,
  { limits = usualFanOut, lock }: Options = {},
): Promise<{ count: number; isLeft: boolean }> => {
  const [first] = transactions
  if (!first) return { count: 0, isLeft: false }
  const { network_id } = first
  // One more than may be written at once, which is enough to decide.
  const found = await findWebhooks(
    trx,
    network_id,
    transactions,
    'WEBHOOK_EVENT_TRANSACTION_STATE',
    Math.max(limits.inline, limits.perEvent) + 1,
  )
  const webhooksOf = ({ wallet_id, organization_id }: ManagedTransactionRow) => [
    ...found(wallet_id),
    ...found(organization_id),
  ]
  const wanted = transactions.filter((row) => webhooksOf(row).length > 0)
  if (wanted.length === 0) return { count: 0, isLeft: false }
  const organizations = Map.groupBy(wanted, ({ organization_id }) => organization_id)
  const later = new Set(
    await findPendingOrganizations(trx, 'state_event', network_id, [...organizations.keys()]),
  )
  for (const [organization_id, mine] of organizations) {
    const count = mine.reduce((sum, row) => sum + webhooksOf(row).length, 0)
    if (count > Math.max(limits.inline, limits.perEvent * mine.length)) later.add(organization_id)
  }
  const isLater = ({ organization_id }: ManagedTransactionRow) => later.has(organization_id)
  const dataOf = (row: ManagedTransactionRow) => ({ transaction: toShortRecord(row, now) })
  await insertStateEvents(
    trx,
    wanted.filter(isLater).map((row) => ({
      network_id,
      organization_id: row.organization_id,
      transaction_id: row.transaction_id,
      wallet_id: row.wallet_id,
      transaction_hash: row.transaction_hash,
      data: dataOf(row),
      create_time: now,
    })),
  )
  // Only these lock webhooks; the others are locked by the worker that expands them.
  const atOnce = wanted.filter((row) => !isLater(row))
  if (atOnce.length > 0) await lock?.(atOnce)
  const notifications = atOnce.flatMap((row) =>
    webhooksOf(row).map(({ webhook_id }) => ({
      organization_id: row.organization_id,
      network_id,
      webhook_id,
      notification_type: notificationTypes.c,
      transaction_hash: row.transaction_hash,
      data: dataOf(row),
    })),
  )
  const { length: count } = await queueNotifications(trx, notifications, now)
  return { count, isLeft: later.size > 0 }
}

// A body is stored for each webhook and sent at every attempt: GetTransaction has the whole `data`.
const longestData = 4_096
const noData = Buffer.alloc(0)

const toShortRecord = (row: ManagedTransactionRow, now: Date) =>
  row.data.length <= longestData
    ? toTransactionRecord(row, now)
    : { ...toTransactionRecord({ ...row, data: noData }, now), data_omitted: true }
