// The event stream of an organization on a network, as a webhook without an endpoint. It is paused when it was not used for
// a while: it stores each notification once more than the webhooks of the organization do.

import { sql } from 'kysely'
import { hashId } from '../../lib/hash-id.ts'
import type { Db } from '../pg/database.ts'
import type { WalletScope } from '../wallets/tables.ts'
import type { WebhookRow } from './webhooks.ts'

/** The stream of an organization on a network: the notifications that clients read instead of an endpoint. */
export type Stream = Pick<WebhookRow, 'webhook_id' | 'next_sequence' | 'update_time'> & {
  /** Not used for so long that nothing is written for it. */
  is_paused: boolean
}

/** A notification of a stream. */
export type StreamRow = {
  webhook_id: string
  webhook_history_id: string
  sequence: number
  /** `operational` only in sinks that subscribe to it. */
  type: 'transfer' | 'confirmation' | 'retraction' | 'transaction' | 'operational'
  create_time: Date
  /** As JSON text, which is sent as it is. */
  data: string
}

/** The id of the stream of an organization on a network. It follows from both, so that lists exclude it without a look-up. */
export const streamIdOf = ({ organization_id, network_id }: WalletScope): string =>
  hashId('stream', organization_id, network_id)

/** The stream of an organization on a network; undefined before its first use. */
export const findStream = async (db: Db, scope: WalletScope): Promise<Stream | undefined> =>
  await db
    .selectFrom('webhook')
    .select(['webhook_id', 'next_sequence', 'update_time', sql<boolean>`${paused}`.as('is_paused')])
    .where('webhook_id', '=', streamIdOf(scope))
    .executeTakeFirst()

// It subscribes to nothing.
const paused = sql`events is not null and cardinality(events) = 0`

/** Notes that streams are in use. */
export const touchStreams = async (
  db: Db,
  webhook_ids: readonly string[],
  now: Date,
): Promise<void> => {
  // Locked in the order of ids first, because an update alone locks in the order of its scan.
  await sql`
    update webhook set update_time = ${now} where webhook_id in (
      select webhook_id from webhook where webhook_id = any(${webhook_ids as string[]}::uuid[])
      order by webhook_id for no key update)`.execute(db)
}

/** Stops writing for the streams that were not used since a time. Says how many. */
export const pauseStreams = async (db: Db, before: Date): Promise<number> => {
  // Those that a writer holds are in use, and are looked at again in the next hour.
  const { numAffectedRows } = await sql`
    update webhook set events = '{}' where webhook_id in (
      select webhook_id from webhook
      where sink = 'stream' and update_time < ${before} and not coalesce(${paused}, false)
      for no key update skip locked)`.execute(db)
  return Number(numAffectedRows ?? 0)
}

/**
 * Writes for a paused stream again, unless another process has resumed it. One number is left out, so that a position
 * from before the pause is recognized as too old.
 */
export const resumeStream = async (
  db: Db,
  scope: WalletScope,
  { first_event, now }: { first_event: number; now: Date },
): Promise<void> => {
  await sql`
    update webhook set events = null, next_sequence = next_sequence + 1,
      first_event = ${first_event}, update_time = ${now}
    where webhook_id = ${streamIdOf(scope)} and ${paused}`.execute(db)
}

/** Stores a stream unless another process has stored it. From then on its notifications are written. */
export const insertStream = async (
  db: Db,
  stream: WalletScope & Pick<WebhookRow, 'secret_sealed' | 'first_event' | 'create_time'>,
): Promise<void> => {
  await sql`
    insert into webhook (webhook_id, organization_id, network_id, webhook_endpoint, confirmation,
      first_event, webhook_state, secret_sealed, next_sequence, create_time, update_time, sink)
    values (${streamIdOf(stream)}, ${stream.organization_id}, ${stream.network_id}, '', 0,
      ${stream.first_event}, 'WEBHOOK_STATE_ENABLED', ${stream.secret_sealed}, 1,
      ${stream.create_time}, ${stream.create_time}, 'stream')
    on conflict do nothing`.execute(db)
}

/** The oldest notification of a stream that retention has left; undefined where there is none. */
export const findOldestSequence = async (
  db: Db,
  webhook_id: string,
): Promise<number | undefined> => {
  const { rows } = await sql<{ sequence: number }>`
    select sequence from delivery where webhook_id = ${webhook_id} and sequence is not null
    order by sequence limit 1`.execute(db)
  return rows[0]?.sequence
}

/** Whether a notification of a stream is stored. */
export const hasSequence = async (
  db: Db,
  webhook_id: string,
  sequence: number,
): Promise<boolean> => {
  const { rows } = await sql`
    select 1 from delivery where webhook_id = ${webhook_id} and sequence = ${sequence}`.execute(db)
  return rows.length > 0
}

/** Of the bodies of one page, as they are stored: compressed, a few times as much in memory. */
export const storedBytesPerPage = 1_048_576

/**
 * The next notifications of some streams, so many of each at most, and fewer where they are large: each stream has its part
 * of the bytes, and at least one notification. Only a page of none is certain to be the last one. Numbers are taken under a
 * lock that is held until the commit, so that a number is never seen before a smaller one.
 */
export const listStreamRows = async (
  db: Db,
  wanted: readonly { webhook_id: string; after: number }[],
  limit: number,
): Promise<StreamRow[]> => {
  // The type follows from the body, so that notifications of streams need no column that others
  // lack.
  const part = Math.ceil(storedBytesPerPage / Math.max(1, wanted.length))
  const { rows } = await sql<StreamRow>`
    select d.webhook_id, d.webhook_history_id, d.sequence, d.create_time, d.data::text as data,
      case when d.data ? 'transaction' then 'transaction'
        when d.data ? 'operational_event' then 'operational'
        when d.data->'transfers'->0->>'transfer_state' = 'TRANSFER_STATE_REORGED' then 'retraction'
        when d.data ? 'confirmed' then 'confirmation'
        else 'transfer' end as type
    from unnest(${wanted.map(({ webhook_id }) => webhook_id)}::uuid[],
        ${wanted.map(({ after }) => after)}::int8[]) w (webhook_id, after), lateral (
      select n.*, pg_column_size(data) as bytes,
        sum(pg_column_size(data)) over (order by sequence) as until
      from (
        select * from delivery
        where webhook_id = w.webhook_id and sequence is not null and sequence > w.after
        order by sequence limit ${limit}) n) d
    where d.until - d.bytes < ${part}
    order by d.webhook_id, d.sequence`.execute(db)
  return rows
}

/** An attempt to deliver a notification, as streams show it. */
export type StreamAttempt = {
  organization_id: string
  network_id: number
  webhook_id: string
  webhook_history_id: string
  sequence: number
  attempt: number
  attempt_time: Date
  duration_ms: number
  status_code: number | null
  error: string | null
  webhook_status: string
}

/** The newest attempts of some organizations since a time, so many of each at most, oldest first. */
export const listRecentAttempts = async (
  db: Db,
  organization_ids: readonly string[],
  { since, limit }: { since: Date; limit: number },
): Promise<StreamAttempt[]> => {
  const { rows } = await sql<StreamAttempt>`
    select a.organization_id, d.network_id, a.webhook_id, d.webhook_history_id, a.sequence,
      a.attempt, a.attempt_time, a.duration_ms, a.status_code, a.error,
      coalesce(q.webhook_status, 'WEBHOOK_STATUS_COMPLETED') as webhook_status
    from unnest(${organization_ids as string[]}::uuid[]) o (organization_id), lateral (
      select * from delivery_attempt
      where organization_id = o.organization_id and attempt_time > ${since}
      order by attempt_time desc limit ${limit}) a
    join delivery d on d.webhook_id = a.webhook_id and d.sequence = a.sequence
    left join delivery_queue q on q.webhook_history_id = d.webhook_history_id
    order by a.attempt_time`.execute(db)
  return rows
}
