import { sql } from 'kysely'
import type { Db } from '../pg/database.ts'
import {
  type EventKind,
  type ListedEventRow,
  type OperationalEventRow,
  trackingKinds,
} from './tables.ts'

/** Names one event: at most one with this name is open at a time. */
export type EventName = {
  kind: EventKind
  chain: string
  network: string
  /** Distinguishes several of one kind on one network, such as the first block of a gap. */
  subject?: string
}

/** A network by its row, for writers that do not know its name. */
export type EventPlace = { network_id: number }

/** How many resolved events of tracking are kept, and as many of the others. */
export const keptEvents = 1_000

// A node's answer may be part of the detail.
const longestDetail = 1_000

/**
 * Records that something is wrong, inside a transaction of the caller or without one. While an event
 * of this name is open, only its detail changes: true when this call opened it. The caller then logs
 * it (`logEvent` in `workers/janitor/operational-log.ts`), after its transaction is committed.
 */
export const openEvent = async (
  db: Db,
  event: EventName & { detail: string; now: Date },
): Promise<boolean> => {
  const { kind, chain, network, subject = '', now } = event
  const detail = event.detail.slice(0, longestDetail)
  const { rows } = await sql<{ opened: boolean }>`
    insert into operational_event as e
      (event_id, kind, chain, network, subject, detail, create_time, update_time, resolve_time)
    values (gen_random_uuid(), ${kind}, ${chain}, ${network}, ${subject}, ${detail}, ${now}, ${now}, null)
    on conflict (chain, network, kind, subject) where resolve_time is null
      do update set detail = excluded.detail, update_time = excluded.update_time
      where e.detail <> excluded.detail
    returning xmax = 0 as opened`.execute(db)
  return rows[0]?.opened ?? false
}

/**
 * The same for an event of an organization on a network that is known by its id. One that is over at once is stored
 * with `isOver`: it is announced and never resolved.
 */
export const openOrganizationEvent = async (
  db: Db,
  event: EventPlace & {
    kind: EventKind
    organization_id: string
    subject: string
    detail: string
    now: Date
    isOver?: boolean
  },
): Promise<void> => {
  const { kind, network_id, organization_id, subject, now, isOver = false } = event
  const detail = event.detail.slice(0, longestDetail)
  await sql`
    insert into operational_event
      (event_id, kind, chain, network, organization_id, subject, detail, create_time, update_time, resolve_time)
    select gen_random_uuid(), ${kind}, chain, network, ${organization_id}::uuid, ${subject}, ${detail},
      ${now}::timestamptz, ${now}::timestamptz, ${isOver ? now : null}::timestamptz
    from network where network_id = ${network_id}
    on conflict do nothing`.execute(db)
}

/** Closes the events of a kind and subject, wherever they are. */
export const resolveSubject = async (
  db: Db,
  { kind, subject, now }: { kind: EventKind; subject: string; now: Date },
): Promise<void> => {
  await sql`
    update operational_event set resolve_time = ${now}
    where kind = ${kind} and subject = ${subject} and resolve_time is null`.execute(db)
}

/** Drops open events whose subject no longer exists. */
export const dropSubject = async (
  db: Db,
  { kind, subject }: { kind: EventKind; subject: string },
): Promise<void> => {
  await sql`
    delete from operational_event
    where kind = ${kind} and subject = ${subject} and resolve_time is null`.execute(db)
}

/** Closes an event; returns its row, or undefined when none was open. */
export const resolveEvent = async (
  db: Db,
  event: EventName & { now: Date },
): Promise<OperationalEventRow | undefined> => {
  const { kind, chain, network, subject = '', now } = event
  const { rows } = await sql<OperationalEventRow>`
    update operational_event set resolve_time = ${now}
    where kind = ${kind} and chain = ${chain} and network = ${network} and subject = ${subject}
      and resolve_time is null
    returning *`.execute(db)
  return rows[0]
}

/** The events of tracking that last, and the newest of those that are over; newest first. */
export const listEvents = async (
  db: Db,
  limit: number,
): Promise<{ open: ListedEventRow[]; resolved: ListedEventRow[] }> => {
  const list = () =>
    db
      .selectFrom('operational_event')
      .select(['kind', 'chain', 'network', 'subject', 'detail'])
      .select(['create_time', 'update_time', 'resolve_time'])
      .where('kind', 'in', trackingKinds)
      .orderBy('create_time', 'desc')
      .limit(limit)
  const open = await list().where('resolve_time', 'is', null).execute()
  const resolved = await list().where('resolve_time', 'is not', null).execute()
  return { open, resolved }
}

/** Deletes the oldest resolved events beyond those that are kept, and what is noted of them. */
export const deleteOldEvents = async (db: Db, kept = keptEvents): Promise<void> => {
  const isTracking = sql`kind = any(${[...trackingKinds]}::text[])`
  for (const group of [isTracking, sql`not ${isTracking}`])
    await sql`
      delete from operational_event
      where resolve_time is not null and ${group} and create_time < (
        select create_time from operational_event where resolve_time is not null and ${group}
        order by create_time desc offset ${kept - 1} limit 1)`.execute(db)
  await sql`
    delete from operational_announcement a where not exists (
      select from operational_event e where e.event_id = a.event_id)`.execute(db)
}
