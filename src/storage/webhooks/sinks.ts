// A sink is a row of `webhook` without an endpoint, which numbers its events, and a row of `sink` with the broker and the
// position. The epoch of a claim fences the position, so a process that was replaced cannot move it. Lock order: the row of
// `webhook` before that of `sink`.

import { sql } from 'kysely'
import type { RowOf } from '../pg/columns.ts'
import type { Db } from '../pg/database.ts'
import type { NetworkName } from '../tracking/networks.ts'
import { openOrganizationEvent } from '../tracking/operational-events.ts'
import type { WalletScope } from '../wallets/tables.ts'
import type { webhookTables } from './tables.ts'
import type { WebhookRow } from './webhooks.ts'

/** Where a sink publishes and how far it has come. */
export type SinkRow = RowOf<typeof webhookTables.sink>

/** A sink with its row of `webhook`. */
export type ListedSink = SinkRow &
  Pick<
    WebhookRow,
    | 'confirmation'
    | 'events'
    | 'webhook_state'
    | 'disable_reason'
    | 'last_error'
    | 'failing_since'
    | 'secret_sealed'
    | 'next_sequence'
  >

/** Stores a sink. The notifications that a transaction writes after this one are numbered for it. */
export const insertSink = async (
  trx: Db,
  sink: Pick<
    SinkRow,
    'webhook_id' | 'organization_id' | 'network_id' | 'sink_type' | 'create_time'
  > &
    Pick<WebhookRow, 'confirmation' | 'events' | 'first_event' | 'secret_sealed'> & {
      sink: 'nats' | 'kafka'
      settings: object
    },
): Promise<void> => {
  await sql`
    insert into webhook (webhook_id, organization_id, network_id, webhook_endpoint, confirmation,
      first_event, webhook_state, secret_sealed, next_sequence, create_time, update_time, sink,
      events)
    values (${sink.webhook_id}, ${sink.organization_id}, ${sink.network_id}, '',
      ${sink.confirmation}, ${sink.first_event}, 'WEBHOOK_STATE_ENABLED', ${sink.secret_sealed}, 1,
      ${sink.create_time}, ${sink.create_time}, ${sink.sink}, ${sink.events}::text[])`.execute(trx)
  // The server's time, as claims compare it: processes may differ.
  await sql`
    insert into sink (webhook_id, organization_id, network_id, sink_type, settings, position, epoch,
      failure_count, next_attempt_time, create_time)
    values (${sink.webhook_id}, ${sink.organization_id}, ${sink.network_id}, ${sink.sink_type},
      ${JSON.stringify(sink.settings)}::jsonb, 0, 0, 0, clock_timestamp(),
      ${sink.create_time})`.execute(trx)
}

const listed = sql`
  select s.*, w.confirmation, w.events, w.webhook_state, w.disable_reason, w.last_error, w.failing_since,
    w.secret_sealed, w.next_sequence
  from sink s join webhook w on w.webhook_id = s.webhook_id`

/** All sinks of an organization on a network, in the order of their creation. */
export const listSinks = async (
  db: Db,
  { organization_id, network_id }: WalletScope,
): Promise<ListedSink[]> => {
  const { rows } = await sql<ListedSink>`
    ${listed} where s.organization_id = ${organization_id} and s.network_id = ${network_id}
      and s.remove_time is null
    order by s.webhook_id`.execute(db)
  return rows
}

/** A sink, with its row of `webhook` locked against everything that numbers, disables or removes it. */
export const lockSink = async (
  trx: Db,
  { organization_id, network_id }: WalletScope,
  webhook_id: string,
): Promise<ListedSink | undefined> => {
  const { rows } = await sql<ListedSink>`
    ${listed} where s.webhook_id = ${webhook_id} and s.organization_id = ${organization_id}
      and s.network_id = ${network_id} and s.remove_time is null
    for no key update of w`.execute(trx)
  return rows[0]
}

/** Changes a locked sink. The claim of a process that publishes with the old settings ends. */
export const updateSink = async (
  trx: Db,
  webhook_id: string,
  change: { settings: object; secret_sealed: Buffer | undefined; now: Date },
): Promise<void> => {
  const { settings, secret_sealed, now } = change
  if (secret_sealed)
    await sql`
      update webhook set secret_sealed = ${secret_sealed}, update_time = ${now}
      where webhook_id = ${webhook_id}`.execute(trx)
  // The new epoch ends the claim: a process that publishes with the old settings cannot move the
  // position.
  await sql`
    update sink set settings = ${JSON.stringify(settings)}::jsonb, failure_count = 0,
      next_attempt_time = clock_timestamp(), epoch = epoch + 1, claim_expire_time = null
    where webhook_id = ${webhook_id}`.execute(trx)
}

/** Enables a locked sink: it is due now. */
export const enableSink = async (trx: Db, webhook_id: string, now: Date): Promise<void> => {
  await sql`
    update webhook set webhook_state = 'WEBHOOK_STATE_ENABLED', disable_reason = null,
      disable_time = null, failing_since = null, update_time = ${now}
    where webhook_id = ${webhook_id}`.execute(trx)
  await sql`
    update sink set failure_count = 0, next_attempt_time = clock_timestamp()
    where webhook_id = ${webhook_id}`.execute(trx)
}

/** Disables a locked sink. What is being published now is the last. */
export const disableSink = async (
  trx: Db,
  webhook_id: string,
  { reason, now }: { reason: string; now: Date },
): Promise<void> => {
  await sql`
    update webhook set webhook_state = 'WEBHOOK_STATE_DISABLED', disable_reason = ${reason},
      disable_time = ${now}, update_time = ${now}
    where webhook_id = ${webhook_id} and webhook_state = 'WEBHOOK_STATE_ENABLED'`.execute(trx)
}

/**
 * Removes a locked sink. Its row stays until `removeEvents` has deleted the events. In this transaction they would keep the
 * webhook locked, and a block of all organizations waits for that: a sink may have millions.
 */
export const removeSink = async (trx: Db, webhook_id: string, now: Date): Promise<void> => {
  await sql`
    update sink set remove_time = ${now}, epoch = epoch + 1 where webhook_id = ${webhook_id}`.execute(
    trx,
  )
  await sql`delete from webhook where webhook_id = ${webhook_id}`.execute(trx)
}

/** Deletes a page of the events of removed sinks, and those sinks of which nothing is left. Says whether there may be more. */
export const removeEvents = async (db: Db, limit: number): Promise<boolean> => {
  const { rows } = await sql<{ webhook_id: string }>`
    select webhook_id from sink
    where remove_time is not null order by remove_time limit 1`.execute(db)
  const [sink] = rows
  if (!sink) return false
  const { numAffectedRows = 0n } = await sql`
    delete from delivery where webhook_history_id = any(array(
      select webhook_history_id from delivery
      where webhook_id = ${sink.webhook_id} and sequence is not null
      order by sequence limit ${limit} for update skip locked))`.execute(db)
  if (numAffectedRows > 0n) return true
  // Waiting ones that the tracker holds are dropped by it, because their webhook is gone.
  const waiting = await sql`
    delete from delivery where webhook_history_id = any(array(
      select webhook_history_id from delivery
      where webhook_id = ${sink.webhook_id} and due_block is not null
      order by due_block limit ${limit} for update skip locked))`.execute(db)
  // The row of the sink goes last: it names the events that are still to be deleted.
  if ((waiting.numAffectedRows ?? 0n) > 0n) return true
  await sql`delete from sink where webhook_id = ${sink.webhook_id}`.execute(db)
  return true
}

/** A sink that this process publishes for until the claim expires. */
export type ClaimedSink = Pick<
  ListedSink,
  | 'webhook_id'
  | 'organization_id'
  | 'network_id'
  | 'sink_type'
  | 'settings'
  | 'position'
  | 'epoch'
  | 'failure_count'
  | 'failing_since'
  | 'secret_sealed'
> &
  NetworkName

/**
 * Claims sinks that have something to publish and are due. Times are the server's. The number of sinks of an
 * installation is bounded by `maxSinks` for each organization and network, so one pass reads all of them.
 */
export const claimSinks = async (
  db: Db,
  { limit, claimMs, isFailing }: { limit: number; claimMs: number; isFailing: boolean },
): Promise<ClaimedSink[]> => {
  const { rows: claimed } = await sql<Omit<ClaimedSink, 'settings' | 'secret_sealed'>>`
    with due as (
      select s.webhook_id, w.failing_since
      from sink s
      join webhook w on w.webhook_id = s.webhook_id and w.webhook_state = 'WEBHOOK_STATE_ENABLED'
        and w.next_sequence > s.position + 1
      join organization o on o.organization_id = s.organization_id and o.disable_time is null
      where s.remove_time is null and s.next_attempt_time <= clock_timestamp()
        and (s.failure_count > 0) = ${isFailing}
        and (s.claim_expire_time is null or s.claim_expire_time <= clock_timestamp())
      order by s.next_attempt_time limit ${limit}
      for update of s skip locked)
    update sink s set epoch = s.epoch + 1,
      claim_expire_time = clock_timestamp() + ${claimMs}::float8 * interval '1 millisecond'
    from due d, network n
    where s.webhook_id = d.webhook_id and n.network_id = s.network_id
    returning s.webhook_id, s.organization_id, s.network_id, s.sink_type, s.position,
      s.epoch, s.failure_count, d.failing_since, n.chain, n.network`.execute(db)
  if (claimed.length === 0) return []
  // Both at one moment. While it waits for a row the statement above sees a change of the sink and not of its webhook: a
  // password would be sent to servers that it is not for.
  const { rows } = await sql<Pick<ClaimedSink, 'webhook_id' | 'settings' | 'secret_sealed'>>`
    select s.webhook_id, s.settings, w.secret_sealed
    from sink s join webhook w on w.webhook_id = s.webhook_id
    where s.webhook_id = any(${claimed.map(({ webhook_id }) => webhook_id)}::uuid[])`.execute(db)
  const destinations = new Map(rows.map((row) => [row.webhook_id, row]))
  return claimed.flatMap((sink) => {
    const destination = destinations.get(sink.webhook_id)
    return destination ? [{ ...sink, ...destination }] : []
  })
}

/** Records that the broker has acknowledged all up to a sequence. False when the claim has passed to another process. */
export const advanceSink = async (
  db: Db,
  { webhook_id, epoch }: Pick<SinkRow, 'webhook_id' | 'epoch'>,
  { position, now }: { position: number; now: Date },
): Promise<boolean> => {
  // The epoch fences, and the position only grows: a delayed process cannot move it back.
  const { numAffectedRows = 0n } = await sql`
    update sink set position = ${position}, publish_time = ${now}, failure_count = 0,
      next_attempt_time = clock_timestamp()
    where webhook_id = ${webhook_id} and epoch = ${epoch} and position < ${position}`.execute(db)
  return numAffectedRows > 0n
}

/**
 * Passes over an event that the broker will never take: the position moves, and `last_error` and an operational event
 * name it. Its notification stays until retention removes it. False when the claim has passed to another process.
 */
export const setEventAside = async (
  db: Db,
  sink: Pick<SinkRow, 'webhook_id' | 'epoch' | 'organization_id' | 'network_id'>,
  { sequence, detail, now }: { sequence: number; detail: string; now: Date },
): Promise<boolean> =>
  await db.transaction().execute(async (trx) => {
    const { webhook_id, organization_id, network_id } = sink
    // The webhook first: that is the order of locks.
    await sql`
      select from webhook where webhook_id = ${webhook_id} for no key update`.execute(trx)
    if (!(await advanceSink(trx, sink, { position: sequence, now }))) return false
    await sql`
      update webhook set last_error = ${detail} where webhook_id = ${webhook_id}`.execute(trx)
    await openOrganizationEvent(trx, {
      ...{ kind: 'sink_event_refused', subject: webhook_id, detail, now, isOver: true },
      ...{ organization_id, network_id },
    })
    return true
  })

/** Gives a claim back and looks at the sink again after a pause, although nothing has failed. */
export const pauseSink = async (
  db: Db,
  { webhook_id, epoch }: Pick<SinkRow, 'webhook_id' | 'epoch'>,
  pauseMs: number,
): Promise<void> => {
  await sql`
    update sink set claim_expire_time = null,
      next_attempt_time = clock_timestamp() + ${pauseMs}::float8 * interval '1 millisecond'
    where webhook_id = ${webhook_id} and epoch = ${epoch}`.execute(db)
}

/** Extends claims and gives the sinks that are still claimed. */
export const renewSinks = async (
  db: Db,
  claims: readonly Pick<SinkRow, 'webhook_id' | 'epoch'>[],
  claimMs: number,
): Promise<Set<string>> => {
  const { rows } = await sql<{ webhook_id: string }>`
    update sink s
    set claim_expire_time = clock_timestamp() + ${claimMs}::float8 * interval '1 millisecond'
    from unnest(${claims.map(({ webhook_id }) => webhook_id)}::uuid[],
      ${claims.map(({ epoch }) => epoch)}::int8[]) c (webhook_id, epoch)
    where s.webhook_id = c.webhook_id and s.epoch = c.epoch
    returning s.webhook_id`.execute(db)
  return new Set(rows.map(({ webhook_id }) => webhook_id))
}

/** Gives a claim back. */
export const releaseSink = async (
  db: Db,
  { webhook_id, epoch }: Pick<SinkRow, 'webhook_id' | 'epoch'>,
): Promise<void> => {
  await sql`
    update sink set claim_expire_time = null
    where webhook_id = ${webhook_id} and epoch = ${epoch}`.execute(db)
}

/** Gives a claim back after a failure and says when the next attempt is due. */
export const postponeSink = async (
  db: Db,
  { webhook_id, epoch }: Pick<SinkRow, 'webhook_id' | 'epoch'>,
  { error, pauseMs, now }: { error: string; pauseMs: number; now: Date },
): Promise<Date | null> => {
  // The webhook first: that is the order of locks.
  const { rows } = await sql<{ failing_since: Date }>`
    update webhook set failing_since = coalesce(failing_since, ${now}), last_error = ${error}
    where webhook_id = ${webhook_id} and exists (
      select 1 from sink where webhook_id = ${webhook_id} and epoch = ${epoch})
    returning failing_since`.execute(db)
  await sql`
    update sink set claim_expire_time = null, failure_count = failure_count + 1,
      next_attempt_time = clock_timestamp() + ${pauseMs}::float8 * interval '1 millisecond'
    where webhook_id = ${webhook_id} and epoch = ${epoch}`.execute(db)
  return rows[0]?.failing_since ?? null
}

/** Records that a sink works again. */
export const clearSinkError = async (db: Db, webhook_id: string): Promise<void> => {
  await sql`
    update webhook set failing_since = null, last_error = null
    where webhook_id = ${webhook_id} and failing_since is not null`.execute(db)
}

/** When the next sink that waits is due; undefined where none waits. */
export const findNextSinkTime = async (db: Db): Promise<{ waitMs: number } | undefined> => {
  const { rows } = await sql<{ wait_ms: number | null }>`
    select extract(epoch from min(greatest(s.next_attempt_time,
      coalesce(s.claim_expire_time, s.next_attempt_time))) - clock_timestamp())::float8 * 1000
      as wait_ms
    from sink s join webhook w on w.webhook_id = s.webhook_id
      and w.webhook_state = 'WEBHOOK_STATE_ENABLED' and w.next_sequence > s.position + 1
    where s.remove_time is null`.execute(db)
  const wait_ms = rows[0]?.wait_ms
  return wait_ms === null || wait_ms === undefined ? undefined : { waitMs: Math.max(0, wait_ms) }
}

/** Whether there is any sink: without one nothing else is asked. */
export const hasSinks = async (db: Db): Promise<boolean> => {
  const { rows } = await sql<{ found: boolean }>`
    select exists (select 1 from sink) as found`.execute(db)
  return rows[0]?.found ?? false
}
