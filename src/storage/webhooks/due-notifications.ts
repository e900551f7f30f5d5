// What a new head confirms. Every block asks it, so its cost is one index look-up per organization that has something
// waiting, and the rows of one page; how much waits does not matter. Each organization has a part of the page only.

import { type RawBuilder, sql } from 'kysely'
import type { NotificationType } from '../../contract/records/states.ts'
import type { Db } from '../pg/database.ts'
import { prepared } from '../pg/prepared.ts'
import { lockWebhooks, type WalletEvent } from './notifications.ts'
import type { WebhookRow } from './webhooks.ts'

/** A notification that waits for its block, with its webhook. */
export type WaitingNotification = {
  webhook_history_id: string
  organization_id: string
  webhook_id: string
  notification_type: NotificationType
  transaction_hash: Buffer
  block_number: number
  /** The block of its transfers. */
  transfer_block: number
  wallet_id: string | null
  /** Where missed history is notified: the places of what was found. */
  backfilled: number[] | null
  /** Of how many transfers the notification before said that they are pending; null for the first one. */
  pending: number | null
  /** What takes the notification instead of an endpoint. */
  sink: WebhookRow['sink']
}

/** How many notifications one database transaction releases at most. Blocks of all organizations wait for it. */
export const usualPage = 200

/**
 * How many of one organization are released with a block. One that has more due is left to the pages between blocks, so that
 * the blocks of other organizations do not wait for it.
 */
export const usualWithBlock = 64

type Due = {
  network_id: number
  head: number
  limit: number
  /** Of each organization. */
  perOrganization?: number | undefined
  /** Leaves out the organizations that have as many due, or more. */
  fewerThan?: number | undefined
}

/**
 * What a head makes due, so many rows at most and of each organization its part only: one with a
 * million of them must not keep others waiting. Within an organization the oldest block comes first.
 * What waits behind an event that is not expanded yet is not due: the notifications of that event
 * come before it.
 */
const duePage = ({
  network_id,
  head,
  limit,
  perOrganization,
  fewerThan,
}: Due): RawBuilder<unknown> => sql`
  with recursive waiting as (
    (select organization_id, due_block from delivery
      where network_id = ${network_id} and due_block is not null
      order by organization_id, due_block limit 1)
    union all
    select n.organization_id, n.due_block from waiting w, lateral (
      select organization_id, due_block from delivery
      where network_id = ${network_id} and due_block is not null
        and organization_id > w.organization_id
      order by organization_id, due_block limit 1) n),
  due as (
    select w.organization_id, least(${head}::int8, e.block_number - 1) as until
    from waiting w left join lateral (
      select block_number from notification_event
      where network_id = ${network_id} and organization_id = w.organization_id
      order by event_number limit 1) e on true
    where w.due_block <= least(${head}::int8, e.block_number - 1)
    order by w.due_block, w.organization_id limit ${limit}),
  part as (
    select least(${perOrganization ?? fewerThan ?? null}::int8,
      greatest(1, ${limit}::int8 / greatest(1, count(*)))) as count
    from due)
  select d.*, part.count as part from part, due u, lateral (
    select * from delivery
    where network_id = ${network_id} and organization_id = u.organization_id
      and due_block is not null and due_block <= u.until
    order by due_block, block_number limit (select count from part)) d`

/**
 * The notifications that this head makes due, in turns of the organizations and for each of them the
 * oldest block first, and whether there may be more.
 */
export const listDueWaiting = async (
  trx: Db,
  due: Due,
): Promise<{ waiting: WaitingNotification[]; isMore: boolean }> => {
  // Every block asks this: planning it costs more than doing it.
  const { rows } = await sql<WaitingNotification & { part: number }>`${sql.raw(prepared)}
    select d.webhook_history_id, d.organization_id, d.webhook_id, d.notification_type,
      d.transaction_hash, d.block_number,
      (d.data->>'block_number')::int8 as transfer_block, w.wallet_id, w.sink,
      d.data->'backfilled' as backfilled, (d.data->>'pending')::int4 as pending, d.part
    from (${duePage(due)}) d left join webhook w on w.webhook_id = d.webhook_id
    order by row_number() over (
        partition by d.organization_id order by d.due_block, d.block_number),
      d.due_block, d.block_number
    limit ${due.limit}`.execute(trx)
  // An organization whose part was full may have more, although the page was not.
  const counts = new Map<string, number>()
  for (const { organization_id } of rows)
    counts.set(organization_id, (counts.get(organization_id) ?? 0) + 1)
  const isMore =
    rows.length === due.limit || rows.some((row) => counts.get(row.organization_id)! >= row.part)
  const { fewerThan = Number.POSITIVE_INFINITY } = due
  const waiting = rows.filter((row) => counts.get(row.organization_id)! < fewerThan)
  return { waiting: waiting.map(({ part: _, ...row }) => row), isMore }
}

/** Locks the webhooks of some waiting notifications. */
export const lockListedWebhooks = async (
  trx: Db,
  network_id: number,
  waiting: readonly WaitingNotification[],
): Promise<void> => {
  const ids = waiting.map(({ webhook_history_id }) => webhook_history_id)
  const listed = sql`delivery where webhook_history_id = any(${ids}::uuid[])`
  await lockWebhooks(trx, listed, { network_id, events: [] })
}

/** Locks the webhooks of what a block may release at this head, and those that want some events. */
export const lockDueWebhooks = async (
  trx: Db,
  { network_id, head }: { network_id: number; head: number },
  events: readonly WalletEvent[] = [],
): Promise<void> =>
  await lockWebhooks(
    trx,
    sql`(${duePage({ network_id, head, limit: usualPage, fewerThan: usualWithBlock + 1 })}) due`,
    { network_id, events },
  )
