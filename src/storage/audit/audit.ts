// The audit log: pending events, the hash chain and its verification. It uses `pg`. Events of the chain are
// appended only. Each has the hash of the one before, and the head is signed, so that a changed or removed row
// is found.

import { CompiledQuery, sql } from 'kysely'
import type { Db } from '../pg/database.ts'
import { prepared } from '../pg/prepared.ts'
import type { AuditChainRow, AuditEventRow, PendingAuditRow } from './tables.ts'

const columns = `event_id, event_time, actor_type, credential_id, role, principal_organization_id,
  organization_id, service, operation, result, reason, event_count, detail`
const recordset = `json_to_recordset($1::text::json) r (event_id uuid, event_time timestamptz,
  actor_type text, credential_id uuid, role text, principal_organization_id uuid, organization_id uuid,
  service text, operation text, result text, reason text, event_count int4, detail text)`

const insertPending = `${prepared} insert into audit_pending (${columns})
  select ${columns} from (select set_config('synchronous_commit',
    case when $2::bool then current_setting('synchronous_commit') else 'off' end, true)) as commit, ${recordset}
  on conflict (event_id) do update set result = excluded.result, reason = excluded.reason,
    organization_id = excluded.organization_id, detail = excluded.detail`

/**
 * Stores events, or the results of events that are stored. Unless `durable`, it does not wait for the disk:
 * the change that follows commits after it, and a log that reached the disk with the change has the event too.
 * The result of an event that was chained without one becomes a second event with the same id.
 */
export const putPendingEvents = async (
  db: Db,
  rows: readonly PendingAuditRow[],
  { durable = false }: { durable?: boolean } = {},
): Promise<void> => {
  if (rows.length === 0) return
  await db.executeQuery(CompiledQuery.raw(insertPending, [JSON.stringify(rows), durable]))
}

/** How many events are not in the chain yet. */
export const countPendingEvents = async (db: Db): Promise<number> => {
  const { rows } = await sql<{ count: number }>`select count(*) from audit_pending`.execute(db)
  return rows[0]?.count ?? 0
}

const isDue = (before: Date) => sql`result is not null or event_time < ${before}`

/** Whether there are events that have ended, or that began before a time and never did. */
export const hasPendingEvents = async (db: Db, before: Date): Promise<boolean> => {
  const { rows } = await sql`select 1 from audit_pending where ${isDue(before)} limit 1`.execute(db)
  return rows.length > 0
}

/** Takes the oldest of these events. */
export const takePendingEvents = async (
  trx: Db,
  { before, limit }: { before: Date; limit: number },
): Promise<PendingAuditRow[]> => {
  const { rows } = await sql<PendingAuditRow>`
    delete from audit_pending where event_id in (
      select event_id from audit_pending
      where ${isDue(before)}
      order by event_id limit ${limit} for update skip locked)
    returning *`.execute(trx)
  return rows.sort((a, b) => (a.event_id < b.event_id ? -1 : 1))
}

/** Appends events to the chain. */
export const insertAuditEvents = async (trx: Db, rows: readonly AuditEventRow[]): Promise<void> => {
  await trx
    .insertInto('audit_event')
    .values([...rows])
    .execute()
}

/** The ends of the chain. */
export const findAuditChain = async (db: Db): Promise<AuditChainRow | undefined> =>
  await db.selectFrom('audit_chain').selectAll().executeTakeFirst()

/** The same, locked against everything that appends or removes. */
export const lockAuditChain = async (trx: Db): Promise<AuditChainRow | undefined> =>
  await trx.selectFrom('audit_chain').selectAll().forUpdate().executeTakeFirst()

/** Begins the chain; the one that is there stays. */
export const insertAuditChain = async (db: Db, chain: AuditChainRow): Promise<void> => {
  await db
    .insertInto('audit_chain')
    .values(chain)
    .onConflict((conflict) => conflict.doNothing())
    .execute()
}

/** Moves an end of the chain. */
export const updateAuditChain = async (
  trx: Db,
  change: Partial<Omit<AuditChainRow, 'id'>>,
): Promise<void> => {
  await trx.updateTable('audit_chain').set(change).where('id', '=', 1).execute()
}

/** Events of the chain in its order, page by page. */
export async function* readAuditEvents(
  db: Db,
  { after, to = Number.MAX_SAFE_INTEGER }: { after: number; to?: number },
  limit = 1_000,
): AsyncGenerator<AuditEventRow> {
  for (let last = after; ; ) {
    const rows = await db
      .selectFrom('audit_event')
      .selectAll()
      .where('sequence', '>', last)
      .where('sequence', '<=', to)
      .orderBy('sequence')
      .limit(limit)
      .execute()
    yield* rows
    if (rows.length < limit) return
    last = rows.at(-1)!.sequence
  }
}

/**
 * Removes events older than a time from the beginning of the chain, `limit` at most. Gives the last one
 * that was removed. It stops at the first that is young enough: there are no holes.
 */
export const deleteOldAuditEvents = async (
  trx: Db,
  { before, limit }: { before: Date; limit: number },
): Promise<Pick<AuditEventRow, 'sequence' | 'hash'> | undefined> => {
  const { rows } = await sql<Pick<AuditEventRow, 'sequence' | 'hash' | 'event_time'>>`
    select sequence, hash, event_time from audit_event order by sequence limit ${limit}`.execute(
    trx,
  )
  const young = rows.findIndex(({ event_time }) => event_time >= before)
  const last = rows.at(young === -1 ? -1 : young - 1)
  if (young === 0 || !last) return undefined
  await sql`delete from audit_event where sequence <= ${last.sequence}`.execute(trx)
  return { sequence: last.sequence, hash: last.hash }
}

/** Which events are wanted. */
export type AuditFilter = {
  organization_id?: string | undefined
  from_time?: Date | undefined
  to_time?: Date | undefined
  operation?: string | undefined
  credential_id?: string | undefined
  result?: string | undefined
}

/** A place in a list of events. */
export type AuditPosition = Pick<AuditEventRow, 'event_time' | 'sequence'>

/** Events, newest first, and the position of the next page if there is one. */
export type AuditPage = { rows: AuditEventRow[]; next: AuditPosition | undefined }

/**
 * One page of events. It looks at `scan` events at most, whatever the filters: a filter that few events
 * pass would otherwise read the whole log.
 */
export const listAuditEvents = async (
  db: Db,
  filter: AuditFilter,
  page: { after?: AuditPosition | undefined; limit: number; scan: number },
): Promise<AuditPage> => {
  const { organization_id, from_time, to_time, operation, credential_id, result } = filter
  const { after, limit, scan } = page
  const { rows: looked } = await sql<AuditEventRow & { matches: boolean }>`
    with looked as (
      select * from audit_event where true
        ${organization_id ? sql`and organization_id = ${organization_id}` : sql``}
        ${from_time ? sql`and event_time >= ${from_time}` : sql``}
        ${to_time ? sql`and event_time <= ${to_time}` : sql``}
        ${after ? sql`and (event_time, sequence) < (${after.event_time}::timestamptz, ${after.sequence}::int8)` : sql``}
      order by event_time desc, sequence desc limit ${scan}),
    wanted as (
      select * from looked where true
        ${operation ? sql`and operation = ${operation}` : sql``}
        ${credential_id ? sql`and credential_id = ${credential_id}` : sql``}
        ${result ? sql`and result = ${result}` : sql``}
      order by event_time desc, sequence desc limit ${limit + 1})
    select *, true as matches from wanted
    union all
    (select *, false from looked order by event_time desc, sequence desc
      offset ${scan - 1} limit 1)`.execute(db)
  const found = looked
    .filter(({ matches }) => matches)
    .sort((a, b) => Number(b.event_time) - Number(a.event_time) || b.sequence - a.sequence)
  const end = looked.find(({ matches }) => !matches)
  const rows = found.slice(0, limit)
  return { rows, next: found.length > limit ? rows.at(-1) : end }
}
