import { setTimeout as delay } from 'node:timers/promises'
import { type Kysely, sql } from 'kysely'
import type { Log } from '../../lib/log.ts'

// biome-ignore lint/suspicious/noExplicitAny: migrations run before there is a schema to type
type AnyDb = Kysely<any>

// The same number in all versions: two versions that start at once must exclude each other.
const lockId = 3853314791062309107n
const pollMs = 100
// The holder may be building the index of a large table. The bound was chosen, not measured.
const usualLimitMs = 60 * 60_000
const usualReportMs = 10_000

/** How the lock of migrations is waited for. */
export type LockWait = {
  log: Log
  /** Gives up after this time; an hour unless set. */
  lockLimitMs?: number | undefined
  /** Reports the wait this often; every 10 s unless set. */
  lockReportMs?: number | undefined
  signal?: AbortSignal | undefined
}

/** Another process has held the lock of migrations for longer than a migration may take. */
export class MigrationLockError extends Error {
  override name = 'MigrationLockError'
  constructor(seconds: number, holder: Holder | undefined) {
    super(
      `Another process is still migrating the database after ${seconds} s (${describeHolder(holder)}). Wait for its end and start again. If that process is gone, end its session: select pg_terminate_backend(${holder?.pid ?? '<pid>'}).`,
    )
  }
}

/** The session that has the lock. */
export type Holder = {
  pid: number
  application: string
  /** Null for a local socket, and where this role may not see it. */
  client: string | null
  statement: string
}

/** The session in words. */
export const describeHolder = (holder: Holder | undefined): string =>
  holder
    ? `database session ${holder.pid}${holder.application && `, ${holder.application}`}${holder.client === null ? '' : `, ${holder.client}`}`
    : 'its session is unknown'

/** The session that has the lock, as far as this role may see it. */
const findHolder = async (session: AnyDb): Promise<Holder | undefined> => {
  const { rows } = await sql<Holder>`
    select a.pid, coalesce(a.application_name, '') as application, host(a.client_addr) as client,
      left(coalesce(a.query, ''), 200) as statement
    from pg_locks l join pg_stat_activity a on a.pid = l.pid
    where l.locktype = 'advisory' and l.granted and l.objsubid = 1
      and l.database = (select oid from pg_database where datname = current_database())
      and l.classid = ${sql.lit(String(lockId >> 32n))}::oid
      and l.objid = ${sql.lit(String(lockId & 0xffff_ffffn))}::oid`.execute(session)
  return rows[0]
}

/**
 * Waits for the lock of migrations by asking again and again. A statement that waits inside of the server would hold a
 * snapshot, for which a concurrent index build of the holder waits in turn.
 */
export const takeMigrationLock = async (
  session: AnyDb,
  { log, signal, lockLimitMs = usualLimitMs, lockReportMs = usualReportMs }: LockWait,
): Promise<void> => {
  const begin = performance.now()
  let reportAt = begin
  for (;;) {
    const { rows } = await sql<{ taken: boolean }>`
      select pg_try_advisory_lock(${sql.lit(String(lockId))}::int8) as taken`.execute(session)
    if (rows[0]?.taken) return
    const now = performance.now()
    const waited_seconds = Math.round((now - begin) / 1000)
    if (now - begin >= lockLimitMs)
      throw new MigrationLockError(waited_seconds, await findHolder(session))
    if (now >= reportAt) {
      reportAt = now + lockReportMs
      log.warn(
        { waited_seconds, holder: await findHolder(session) },
        'waiting for another process that migrates the database',
      )
    }
    await delay(pollMs, undefined, signal && { signal }).catch(() => signal?.throwIfAborted())
  }
}

/** Releases the lock. A connection that is lost has released it. */
export const releaseMigrationLock = async (session: AnyDb): Promise<void> => {
  await sql`select pg_advisory_unlock(${sql.lit(String(lockId))}::int8)`
    .execute(session)
    .catch(() => {})
}
