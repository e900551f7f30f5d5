// The queue of a webhook as a whole: held, released, restarted or ended, a page at a time. The webhook is locked before each page,
// and a block that notifies it waits for that lock, with the blocks of all organizations behind it. A webhook that was disabled for
// some days may have millions of undelivered notifications.

import { type RawBuilder, sql } from 'kysely'
import type { Db } from '../pg/database.ts'
import { queuesAlone } from './queue-locks.ts'

/** Rows of one page. */
export const queuePage = 1_000

// Both in the order of their index: without it the planner may read the table from its start for each page. The index of what
// is due begins with the organization.
const inDueOrder = sql`next_attempt_time, sequence`
const inStoppedOrder = sql`sequence`
const isDue = (webhook_id: string) => sql`next_attempt_time is not null
  and organization_id = (select organization_id from webhook where webhook_id = ${webhook_id})`
const isStopped = (...states: string[]) =>
  sql`next_attempt_time is null and webhook_status = any(${states}::text[])`

/**
 * Changes a page of a queue, in the order of an index, and says how many rows that were. Each row is locked first and then
 * found by its key: a claim may change it meanwhile, which gives it another `ctid`. A page that misses such rows would look
 * like the last one.
 */
const changePage = async (
  trx: Db,
  webhook_id: string,
  { set, where, order }: Record<'set' | 'where' | 'order', RawBuilder<unknown>>,
): Promise<number> => {
  // The lock of the queue before its rows, as every writer of queues (`queue-locks.ts`).
  await queuesAlone([webhook_id]).execute(trx)
  const { numAffectedRows = 0n } = await sql`
    update delivery_queue set ${set} where webhook_history_id = any(array(
      select webhook_history_id from delivery_queue
      where webhook_id = ${webhook_id} and ${where} order by ${order} limit ${queuePage}
      for no key update))`.execute(trx)
  return Number(numAffectedRows)
}

/** Holds back what is not delivered; says whether more is left. */
export const holdQueue = async (trx: Db, webhook_id: string): Promise<boolean> => {
  const set = sql`webhook_status = 'WEBHOOK_STATUS_ON_HOLD', next_attempt_time = null`
  const page = { set, where: isDue(webhook_id), order: inDueOrder }
  return (await changePage(trx, webhook_id, page)) === queuePage
}

// A change of a webhook has a page every few milliseconds.
const abandonedMs = 60_000

/**
 * Holds back a page of a webhook that is disabled, and says whether more is left. Unless it was changed since and may be about
 * to be enabled: then what such a change has left due when it broke off.
 */
export const holdDisabled = async (db: Db, webhook_id: string, now: number): Promise<boolean> => {
  const abandoned = new Date(now - abandonedMs)
  return await db.transaction().execute(async (trx) => {
    const { rows } = await sql`
      select from webhook
      where webhook_id = ${webhook_id} and webhook_state = 'WEBHOOK_STATE_DISABLED'
        and (update_time = disable_time or update_time < ${abandoned})
      for no key update`.execute(trx)
    return rows.length > 0 && (await holdQueue(trx, webhook_id))
  })
}

/**
 * Makes due what is held back or failed for good; says whether more is left. Most of what failed did so while the endpoint
 * was about to be disabled. The webhook stays disabled until all is due: what comes meanwhile waits behind it.
 */
export const releaseQueue = async (trx: Db, webhook_id: string, now: Date): Promise<boolean> => {
  await sql`update webhook set update_time = ${now} where webhook_id = ${webhook_id}`.execute(trx)
  const set = sql`webhook_status = 'WEBHOOK_STATUS_PENDING', next_attempt_time = ${now}, retry_step = 0`
  const where = isStopped('WEBHOOK_STATUS_ON_HOLD', 'WEBHOOK_STATUS_FAILED')
  return (await changePage(trx, webhook_id, { set, where, order: inStoppedOrder })) === queuePage
}

/** Makes due what waits for its next attempt; says whether more is left. */
export const restartQueue = async (trx: Db, webhook_id: string, now: Date): Promise<boolean> => {
  const set = sql`next_attempt_time = ${now}, retry_step = 0`
  const where = sql`${isDue(webhook_id)} and next_attempt_time > ${now}`
  return (await changePage(trx, webhook_id, { set, where, order: inDueOrder })) === queuePage
}

/** Ends a page of what is not delivered and never will be: says how many rows that were, and whether more are left. */
export const endQueue = async (
  trx: Db,
  webhook_id: string,
): Promise<{ count: number; isMore: boolean }> => {
  // What the tracker has in hand it drops itself, because it is no longer needed; to wait for it
  // here would be to wait in a circle.
  const { numAffectedRows = 0n } = await sql`
    delete from delivery where webhook_history_id = any(array(
      select webhook_history_id from delivery
      where webhook_id = ${webhook_id} and due_block is not null
      order by due_block limit ${queuePage} for update skip locked))`.execute(trx)
  const set = sql`webhook_status = 'WEBHOOK_STATUS_FAILED', next_attempt_time = null`
  // In two parts, one for each index.
  const counts = [
    Number(numAffectedRows),
    await changePage(trx, webhook_id, { set, where: isDue(webhook_id), order: inDueOrder }),
    await changePage(trx, webhook_id, {
      ...{ set, where: isStopped('WEBHOOK_STATUS_ON_HOLD'), order: inStoppedOrder },
    }),
  ]
  return {
    count: counts.reduce((sum, count) => sum + count),
    isMore: counts.some((count) => count === queuePage),
  }
}

/** Makes a page of the failed notifications of an enabled webhook due, those after a number and not before a time. */
export const retryFailed = async (
  trx: Db,
  webhook_id: string,
  { from_time, now, after }: { from_time: Date; now: Date; after: number },
): Promise<{ count: number; last: number | undefined }> => {
  await queuesAlone([webhook_id]).execute(trx)
  const { rows } = await sql<{ count: number; seen: number; last: number }>`
    with page as materialized (
      select webhook_history_id, sequence from delivery_queue
      where webhook_id = ${webhook_id} and ${isStopped('WEBHOOK_STATUS_FAILED')} and sequence > ${after}
      order by sequence limit ${queuePage}),
    retried as (
      update delivery_queue q set webhook_status = 'WEBHOOK_STATUS_PENDING', next_attempt_time = ${now},
        retry_step = 0
      from page p join delivery d on d.webhook_history_id = p.webhook_history_id
      where q.webhook_history_id = p.webhook_history_id and d.create_time >= ${from_time}
      returning 1)
    select (select count(*) from retried) as count, count(*) as seen, max(sequence) as last
    from page`.execute(trx)
  const { count = 0, seen = 0, last } = rows[0] ?? {}
  return { count, last: seen === queuePage ? last : undefined }
}
