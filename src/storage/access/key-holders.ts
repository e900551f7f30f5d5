import { sql } from 'kysely'
import type { Db } from '../pg/database.ts'

/** A database session that lives as long as its process listens. */
export type HoldingSession = { query(text: string, values: unknown[]): Promise<unknown> }

// Two-part advisory locks of this class say which master keys a running service opens with. They end with
// their session, so that a killed process leaves nothing behind.
const lockClass = 1_718_446_957

/** Takes a shared lock for every key that the process opens with; called again, for those that are new. */
export function createKeyHolder(
  keyIds: () => readonly string[],
): (session: HoldingSession) => Promise<void> {
  // By session, because a reconnect has lost the locks and must take them again.
  const held = new WeakMap<HoldingSession, Set<string>>()
  return async (session) => {
    const taken = held.get(session) ?? new Set()
    held.set(session, taken)
    for (const key_id of keyIds()) {
      if (taken.has(key_id)) continue
      // The lock takes a signed 32-bit integer; `pg_locks` shows it unsigned.
      const values = [lockClass, Number.parseInt(key_id, 16) | 0]
      await session.query('select pg_advisory_lock_shared($1::int4, $2::int4)', values)
      taken.add(key_id)
    }
  }
}

const ofServices = sql`locktype = 'advisory' and objsubid = 2 and granted
        and classid::int8 = ${sql.lit(lockClass)}
        and database = (select oid from pg_database where datname = current_database())`

/**
 * Whether exactly one process listens to changes. None means that this one has just lost its session, and then others may
 * be there.
 */
export async function isAlone(db: Db): Promise<boolean> {
  const { rows } = await sql<{ count: number }>`
    select count(distinct pid)::int as count from pg_locks where ${ofServices}`.execute(db)
  return rows[0]?.count === 1
}

/** How many running services open with master keys, but not with this one. */
export async function countServicesWithout(db: Db, key_id: string): Promise<number> {
  const objid = Number.parseInt(key_id, 16)
  const { rows } = await sql<{ count: number }>`
    select count(*)::int as count from (
      select pid from pg_locks where ${ofServices}
      group by pid having not bool_or(objid::int8 = ${objid})) as services`.execute(db)
  return rows[0]?.count ?? 0
}
