// What became of attempts. Lock order: webhooks by id, then the locks of their queues, then rows. A batch without a
// failure, of webhooks that were not failing before, locks no webhook.

import { sql } from 'kysely'
import { bulkRows, unnestRows } from '../pg/bulk.ts'
import type { Db } from '../pg/database.ts'
import { queuesAlone, queuesShared } from './queue-locks.ts'

/** What became of one attempt. */
export type AttemptRecord = {
  webhook_history_id: string
  sequence: number
  organization_id: string
  webhook_id: string
  claim_expire_time: Date
  is_delivered: boolean
  attempt_time: Date
  duration_ms: number
  status_code: number | null
  error: string | null
  response_body: Buffer | null
  /** Headers as JSON (`domain/webhooks/attempt-headers.ts`). */
  request_headers: string | null
  response_headers: string | null
  /** Null when it was delivered, or when no attempt is left. */
  next_attempt_time: Date | null
  /** The receiver said that it does not exist any more (410). */
  is_gone: boolean
  /** The webhook was failing when the attempt began. */
  was_failing: boolean
}

// A webhook whose deliveries all fail for this long is disabled (docs/decisions/webhooks.md).
const patienceMs = 5 * 86_400_000

/**
 * Records attempts in one transaction, with what they mean for their webhooks. Gives the webhooks that it disabled: their
 * queues are held back afterwards (`holdDisabled`), because the attempts of all organizations wait for this transaction.
 */
export const recordAttempts = async (
  db: Db,
  attempts: readonly AttemptRecord[],
  now: Date,
): Promise<string[]> => {
  // In one order: another courier, whose claim had expired, may record the same deliveries.
  const records = attempts.toSorted((a, b) => compare(a.webhook_history_id, b.webhook_history_id))
  const outcomes = summarize(attempts)
  // The common case in one statement: no failure now or before.
  if (outcomes.length === 0) {
    await storeAttempts(db, records)
    return []
  }
  return await db.transaction().execute(async (trx) => {
    // The webhooks first: disabling and removing lock in this order too.
    const failing = await updateWebhooks(trx, outcomes)
    const disabled = failing.filter(
      ({ is_gone, failing_since }) =>
        is_gone || (failing_since && now.getTime() - failing_since.getTime() >= patienceMs),
    )
    await queuesAlone(records.map(({ webhook_id }) => webhook_id)).execute(trx)
    await rescheduleFailed(trx, records)
    await storeAttempts(trx, records)
    return disabled.length > 0 ? await disableWebhooks(trx, disabled, now) : []
  })
}

// Not `localeCompare`: the order must be that of every other process.
const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

type Outcome = {
  webhook_id: string
  is_well: boolean
  is_gone: boolean
  attempt_time: Date
  error: string | null
}

/** One line for each webhook that failed or recovered. */
const summarize = (records: readonly AttemptRecord[]): Outcome[] => {
  const byWebhook = Map.groupBy(records, ({ webhook_id }) => webhook_id)
  return [...byWebhook].flatMap(([webhook_id, mine]) => {
    const failed = mine.filter(({ is_delivered }) => !is_delivered)
    // One success among failures shows that the receiver works.
    const is_well = failed.length < mine.length
    if (failed.length === 0 && !mine.some(({ was_failing }) => was_failing)) return []
    const last = failed.at(-1)
    return {
      webhook_id,
      is_well,
      is_gone: mine.some(({ is_gone }) => is_gone),
      attempt_time: last?.attempt_time ?? mine[0]!.attempt_time,
      error: last?.error ?? null,
    }
  })
}

const updateWebhooks = async (trx: Db, outcomes: readonly Outcome[]) => {
  const { rows } = await sql<{
    webhook_id: string
    failing_since: Date | null
    is_gone: boolean
  }>`
    with outcome as (
      select w.webhook_id, o.is_well, o.is_gone, o.attempt_time, o.error from webhook w
      join json_to_recordset(${bulkRows(outcomes)}::text::json) o (webhook_id uuid,
        is_well boolean, is_gone boolean, attempt_time timestamptz, error text)
        on o.webhook_id = w.webhook_id
      order by w.webhook_id for no key update of w)
    update webhook w set
      failing_since = case when o.is_well then null
        else coalesce(w.failing_since, o.attempt_time) end,
      last_error = coalesce(o.error, w.last_error)
    from outcome o where w.webhook_id = o.webhook_id
    returning w.webhook_id, w.failing_since, o.is_gone`.execute(trx)
  return rows
}

/** Disables locked webhooks, in one statement whatever their number, and stores the event of each that was enabled. */
const disableWebhooks = async (
  trx: Db,
  failed: readonly { webhook_id: string; is_gone: boolean }[],
  now: Date,
): Promise<string[]> => {
  const reasons = failed.map(({ webhook_id, is_gone }) => ({
    webhook_id,
    reason: is_gone ? 'The endpoint answered 410 Gone.' : 'Every delivery failed for 5 days.',
  }))
  const { rows } = await sql<{ webhook_id: string }>`
    with disabled as (
      update webhook w set webhook_state = 'WEBHOOK_STATE_DISABLED', disable_reason = r.reason,
        disable_time = ${now}, update_time = ${now}
      from json_to_recordset(${bulkRows(reasons)}::text::json) r (webhook_id uuid, reason text)
      where w.webhook_id = r.webhook_id and w.webhook_state = 'WEBHOOK_STATE_ENABLED'
      returning w.webhook_id, w.organization_id, w.network_id, r.reason),
    opened as (
      insert into operational_event (event_id, kind, chain, network, organization_id, subject, detail,
        create_time, update_time, resolve_time)
      select gen_random_uuid(), 'webhook_disabled', n.chain, n.network, d.organization_id,
        d.webhook_id::text, d.reason, ${now}, ${now}, null
      from disabled d join network n on n.network_id = d.network_id
      on conflict do nothing)
    select webhook_id from disabled`.execute(trx)
  return rows.map(({ webhook_id }) => webhook_id)
}

// A row without a time is on hold or has failed for good: an attempt that ends late must not revive it.
const isWaiting = sql`q.next_attempt_time is not null`

/** Says when what failed is due again. */
const rescheduleFailed = async (trx: Db, records: readonly AttemptRecord[]): Promise<void> => {
  const delivered = new Set(
    records.filter((record) => record.is_delivered).map((record) => record.webhook_history_id),
  )
  const rows = records
    .filter(({ webhook_history_id }) => !delivered.has(webhook_history_id))
    .map(({ webhook_history_id, claim_expire_time, next_attempt_time }) => ({
      webhook_history_id,
      claim_expire_time,
      next_attempt_time,
    }))
  if (rows.length === 0) return
  // A claim that has passed to another courier is that one's to bring to an end. What is on hold or
  // removed meanwhile stays so.
  await sql`
    update delivery_queue q set
      claim_expire_time = null,
      retry_step = case when ${isWaiting} then q.retry_step + 1 else q.retry_step end,
      next_attempt_time = case when ${isWaiting} then r.next_attempt_time end,
      webhook_status = case when not ${isWaiting} then q.webhook_status
        when r.next_attempt_time is null then 'WEBHOOK_STATUS_FAILED'
        else 'WEBHOOK_STATUS_IN_PROGRESS' end
    from json_to_recordset(${bulkRows(rows)}::text::json)
      r (webhook_history_id uuid, claim_expire_time timestamptz, next_attempt_time timestamptz)
    where q.webhook_history_id = r.webhook_history_id
      and q.claim_expire_time = r.claim_expire_time`.execute(trx)
}

const attemptColumns = [
  'webhook_id',
  'sequence',
  'attempt',
  'organization_id',
  'attempt_time',
  'duration_ms',
  'status_code',
  'error',
  'response_body',
  'request_headers',
  'response_headers',
] as const

/** Two attempts of one delivery may be in one batch; their numbers follow each other. */
const numbered = (records: readonly AttemptRecord[]) => {
  const counts = new Map<string, number>()
  return records.map((record) => {
    const attempt = (counts.get(record.webhook_history_id) ?? 0) + 1
    counts.set(record.webhook_history_id, attempt)
    return { ...record, attempt }
  })
}

/**
 * Adds attempts after those that are there; a success ends a delivery, also one that another process has claimed. Locks
 * the queue first: who inserts waits for another who inserts the same.
 */
const storeAttempts = async (db: Db, records: readonly AttemptRecord[]): Promise<void> => {
  const delivered = records
    .filter(({ is_delivered }) => is_delivered)
    .map(({ webhook_history_id }) => webhook_history_id)
  const isOneEach =
    new Set(records.map(({ webhook_history_id }) => webhook_history_id)).size === records.length
  // Nearly always: then no record is copied to add its number.
  const rows = isOneEach ? records : numbered(records)
  const attempt = isOneEach ? sql`1` : sql`r.attempt`
  const given = isOneEach ? attemptColumns.filter((name) => name !== 'attempt') : attemptColumns
  const columns = sql.join(attemptColumns.map((name) => sql.ref(name)))
  await sql`
    with held as materialized (${queuesShared(records.map(({ webhook_id }) => webhook_id))}),
    done as (
      delete from delivery_queue where webhook_history_id = any(${delivered}::uuid[]))
    insert into delivery_attempt (${columns})
    select r.webhook_id, r.sequence, ${attempt} + coalesce((
        select max(a.attempt) from delivery_attempt a
        where a.webhook_id = r.webhook_id and a.sequence = r.sequence), 0),
      r.organization_id, r.attempt_time, r.duration_ms, r.status_code, r.error, r.response_body,
      r.request_headers, r.response_headers
    from ${unnestRows('delivery_attempt', given, rows)} r
    where (select held from held) >= 0`.execute(db)
}
