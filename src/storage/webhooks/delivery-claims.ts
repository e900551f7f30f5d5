// What couriers take. A claim is a time in the row of the queue (`claim_expire_time`) and not a lock: a slow receiver holds
// no connection of the database. Couriers pass over rows that another one is claiming (`SKIP LOCKED`).

import { type RawBuilder, sql } from 'kysely'
import { highestId, lowestId } from '../../lib/ids.ts'
import { bulkRows } from '../pg/bulk.ts'
import type { Db } from '../pg/database.ts'
import { prepared } from '../pg/prepared.ts'
import type { WebhookHeaderRow } from './headers.ts'
import type { DeliveryRow } from './notifications.ts'
import { queuesAlone } from './queue-locks.ts'
import type { WebhookRow } from './webhooks.ts'

/** A webhook that has something to send, now or later. */
export type QueuedWebhook = Pick<WebhookRow, 'webhook_id' | 'organization_id'> & {
  /** When the first of it is due. */
  first_time: Date
}

/** A notification that one courier has until the claim expires. */
export type ClaimedDelivery = Pick<
  DeliveryRow,
  'webhook_history_id' | 'organization_id' | 'webhook_id' | 'notification_type' | 'create_time'
> &
  Partial<Pick<DeliveryRow, 'network_id' | 'block_number'>> & {
    sequence: number
    retry_step: number
    claim_expire_time: Date
    /** As JSON text, which goes into the body as it is. */
    data: string
  }

/** What a courier must know of the receiving end. */
export type ReceiverRow = Pick<
  WebhookRow,
  | 'webhook_id'
  | 'organization_id'
  | 'network_id'
  | 'webhook_endpoint'
  | 'webhook_state'
  | 'failing_since'
  | 'secret_sealed'
  | 'previous_secret_sealed'
  | 'previous_secret_expire_time'
>

/** A look at the queues. */
export type QueueLook = {
  webhooks: QueuedWebhook[]
  /** Organizations that have more webhooks with something to send, and where the look at each ended. */
  longer: { organization_id: string; webhook_id: string }[]
  /** The last organization that was looked at, where more follow. */
  last: string | undefined
}

/** Webhooks of one organization that one look reads. */
export const webhooksPerLook = 128
/** Webhooks of all organizations that one look reads. */
export const rowsPerLook = 4_096

type QueueRow = QueuedWebhook & { place: number; is_disabled: boolean }

/**
 * The webhooks of organizations after one that have something to send, without those of disabled organizations: one look into the
 * index for each, however long its queue. It reads so many of each organization, and of all: one that has 10,000 webhooks must not
 * delay the others. The rest of its webhooks `listQueuedOf` lists.
 */
export const listQueuedWebhooks = async (db: Db, after: string = lowestId): Promise<QueueLook> => {
  // A recursive step jumps to the next webhook in the index (loose index scan): the cost follows
  // the number of webhooks, not of notifications.
  const next = (organization: RawBuilder<unknown>, webhook: RawBuilder<unknown>) => sql`
    select organization_id, webhook_id, next_attempt_time from delivery_queue
    where (organization_id, webhook_id) > (${organization}, ${webhook}) and next_attempt_time is not null
    order by organization_id, webhook_id, next_attempt_time limit 1`
  const ended = sql`case when q.place < ${webhooksPerLook} then q.webhook_id else ${highestId}::uuid end`
  // Not prepared, as all that reads a queue: a plan of the empty one reads all of it, and a burst fills it within seconds.
  const { rows } = await sql<QueueRow>`
    with recursive queued (organization_id, webhook_id, next_attempt_time, place, row) as (
      select n.*, 1, 1 from (${next(sql`${after}::uuid`, sql`${after === lowestId ? lowestId : highestId}::uuid`)}) n
      union all
      select n.*, case n.organization_id when q.organization_id then place + 1 else 1 end, row + 1
      from queued q, lateral (${next(sql`q.organization_id`, ended)}) n
      where row < ${rowsPerLook})
    select webhook_id, organization_id, next_attempt_time as first_time, place, is_disabled
    -- One look-up for each organization: an anti-join would read all of them.
    from queued q, lateral (
      select (select o.disable_time from organization o
        where o.organization_id = q.organization_id) is not null as is_disabled) o
    order by row`.execute(db)
  const webhooks = rows.filter(({ is_disabled }) => !is_disabled)
  return {
    webhooks,
    longer: webhooks.filter(({ place }) => place === webhooksPerLook),
    // The last one may have been read in part.
    last:
      rows.length === rowsPerLook
        ? rows.findLast((row) => row.organization_id !== rows.at(-1)!.organization_id)
            ?.organization_id
        : undefined,
  }
}

/** The next webhooks of one organization that have something to send. */
export const listQueuedOf = async (
  db: Db,
  { organization_id, webhook_id }: { organization_id: string; webhook_id: string },
): Promise<QueuedWebhook[]> => {
  const next = (webhook: RawBuilder<unknown>) => sql`
    select webhook_id, next_attempt_time from delivery_queue
    where organization_id = ${organization_id} and webhook_id > ${webhook} and next_attempt_time is not null
    order by webhook_id, next_attempt_time limit 1`
  const { rows } = await sql<QueuedWebhook>`
    with recursive queued (webhook_id, next_attempt_time, place) as (
      select n.*, 1 from (${next(sql`${webhook_id}::uuid`)}) n
      union all
      select n.*, place + 1 from queued q, lateral (${next(sql`q.webhook_id`)}) n
      where place < ${webhooksPerLook})
    select webhook_id, ${organization_id}::uuid as organization_id, next_attempt_time as first_time
    from queued order by place`.execute(db)
  return rows
}

// Of the bodies of one claim, as they are stored: compressed, a few times as much in memory. Exact lengths would be read from
// the whole bodies of all that is due.
const storedBytesPerClaim = 4 * 1_048_576

/**
 * Claims due notifications, so many of each webhook at most; those of another courier are passed over. Each organization has
 * its part of the bytes of one claim, and at least one notification.
 * Written so that there is one plan only, row by row: the number of rows is not known beforehand,
 * and a plan made for many would read the whole history.
 */
export const claimDeliveries = async (
  db: Db,
  wanted: readonly { organization_id: string; webhook_id: string; count: number }[],
  { now, expire }: { now: Date; expire: Date },
): Promise<ClaimedDelivery[]> => {
  const organizations = new Set(wanted.map(({ organization_id }) => organization_id)).size
  const part = Math.ceil(storedBytesPerClaim / Math.max(1, organizations))
  const { rows } = await sql<Omit<ClaimedDelivery, 'claim_expire_time'>>`
    with claimed as (
      update delivery_queue set claim_expire_time = ${expire}
      where ctid = any(array(select ctid from (
        select c.ctid, b.bytes, sum(b.bytes) over (
          partition by w.organization_id order by w.place, c.next_attempt_time, c.sequence) as until
        from unnest(${wanted.map(({ organization_id }) => organization_id)}::uuid[],
            ${wanted.map(({ webhook_id }) => webhook_id)}::uuid[],
            ${wanted.map(({ count }) => count)}::int4[]) with ordinality w (organization_id, webhook_id, count, place),
          lateral (
            select ctid, next_attempt_time, sequence from delivery_queue
            where organization_id = w.organization_id and webhook_id = w.webhook_id
              and next_attempt_time <= ${now}
              and (claim_expire_time is null or claim_expire_time <= ${now})
            order by next_attempt_time, sequence limit w.count
            for update skip locked) c,
          lateral (
            select coalesce((select pg_column_size(data) from delivery
              where webhook_id = w.webhook_id and sequence = c.sequence limit 1), 0) as bytes) b) due
        where until - bytes < ${part}))
      returning webhook_id, sequence, retry_step)
    select d.webhook_history_id, d.organization_id, d.webhook_id, d.notification_type,
      c.retry_step, d.create_time, d.sequence, d.network_id, d.block_number, d.data::text as data
    from claimed c, lateral (
      select * from delivery where webhook_id = c.webhook_id and sequence = c.sequence
      limit 1) d`.execute(db)
  const claims = rows.map((row) => Object.assign(row, { claim_expire_time: expire }))
  // First attempts go out in the order of their numbers.
  return claims.sort((a, b) => a.sequence - b.sequence)
}

/** Releases claims, so that other processes need not wait for their expiry. */
export const releaseClaims = async (
  db: Db,
  claims: readonly Pick<
    ClaimedDelivery,
    'webhook_history_id' | 'webhook_id' | 'claim_expire_time'
  >[],
): Promise<void> => {
  if (claims.length === 0) return
  // The expiry is part of the claim: one that has passed to another courier has another time and
  // stays.
  const rows = claims.map(({ webhook_history_id, claim_expire_time }) => ({
    webhook_history_id,
    claim_expire_time,
  }))
  const webhooks = claims.map(({ webhook_id }) => webhook_id)
  await sql`
    with held as materialized (${queuesAlone(webhooks)})
    update delivery_queue q set claim_expire_time = null
    from json_to_recordset(${bulkRows(rows)}::text::json)
      r (webhook_history_id uuid, claim_expire_time timestamptz)
    where q.webhook_history_id = r.webhook_history_id
      and q.claim_expire_time = r.claim_expire_time
      and (select held from held) > 0`.execute(db)
}

/** The webhooks of some deliveries as they are now; removed ones are missing. */
export const listReceivers = async (
  db: Db,
  webhook_ids: readonly string[],
): Promise<ReceiverRow[]> => {
  // Read at each round, not cached: a secret or an endpoint that was changed applies to the next
  // attempt.
  const { rows } = await sql<ReceiverRow>`${sql.raw(prepared)}
    select webhook_id, organization_id, network_id, webhook_endpoint, webhook_state, failing_since,
      secret_sealed, previous_secret_sealed, previous_secret_expire_time
    from webhook where webhook_id = any(${webhook_ids as string[]}::uuid[])`.execute(db)
  return rows
}

/** The headers of some webhooks, and those of all webhooks of their organizations. */
export const listReceiverHeaders = async (
  db: Db,
  webhook_ids: readonly string[],
): Promise<WebhookHeaderRow[]> => {
  const ids = webhook_ids as string[]
  const columns = sql`h.webhook_header_id, h.organization_id, h.network_id, h.webhook_id, h.header_key,
    h.header_value_sealed, h.create_time`
  const { rows } = await sql<WebhookHeaderRow>`${sql.raw(prepared)}
    select ${columns} from webhook_header h where h.webhook_id = any(${ids}::uuid[])
    union all
    select ${columns} from (
      select distinct organization_id, network_id from webhook
      where webhook_id = any(${ids}::uuid[])) w
    join webhook_header h on h.organization_id = w.organization_id and h.network_id = w.network_id
      and h.webhook_id is null`.execute(db)
  return rows
}
