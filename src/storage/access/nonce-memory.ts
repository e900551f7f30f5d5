import { sql } from 'kysely'
import type pg from 'pg'
import type { Db } from '../pg/database.ts'

/** So far a crash may have taken nonces: a little further, should the clock have been set meanwhile. */
const distrusted = "interval '2 seconds'"
/** A service that starts after a longer break trusts no nonce of before: the files may be an older copy. */
const longBreak = "interval '30 seconds'"
/** The clock of a client names whole milliseconds, rounded down, and a timer may fire one too early. */
const roundingMs = 2
/** Refused requests ask for a renewal at most so often. */
const renewEveryMs = 250

/** The memory of spent nonces, which a crash empties and a restore sets back. */
export type NonceMemory = {
  /** Checks the memory before the first request; answers after how many milliseconds it is trusted. */
  begin(): Promise<number>
  /** Checks it and records that it is in use; to be called every few seconds. */
  keep(): Promise<void>
  /** The same, after a nonce was refused; calls are merged. */
  renew(): Promise<void>
  /** The newest time at which this process has seen the memory. A memory of an earlier time is a copy. */
  newest(): string
}

/**
 * The condition under which no nonce of this time can have been spent unknown to the memory `m`,
 * for the credential `c`: the memory is the original and not a copy of it.
 */
export const isTrusted = (time: string, newest: string): string =>
  `m.trusted_after < ${time}
    and coalesce(m.restored_after, '-infinity') + coalesce(c.nonce_lead_ms, 0) * interval '1 ms' < ${time}
    and m.xmin = m.written_by and m.tableoid = m.written_as
    and m.server_start_time = pg_postmaster_start_time()
    and coalesce(m.seen_time, 'infinity') >= ${newest}`

type Place = { system_identifier: string | null; timeline: string | null }

/**
 * The identity of the server. Ordinary roles may read both by default, but managed services and
 * compatible databases may refuse or lack the functions. Then the other signs have to do.
 * The timeline comes from the WAL: pg_control_checkpoint() shows a new one only after a checkpoint.
 */
const readPlace = async (db: Db): Promise<Place> => {
  const ask = async (query: ReturnType<typeof sql<{ value: string }>>): Promise<string | null> => {
    try {
      return (await query.execute(db)).rows[0]?.value ?? null
    } catch (error) {
      const { code = '' } = error as { code?: string }
      // Access rule violation and undefined function; feature not supported; not in this state; internal.
      if (/^(42|0A|55|XX)/.test(code)) return null
      throw error
    }
  }
  return {
    system_identifier: await ask(
      sql<{ value: string }>`select system_identifier::text as value from pg_control_system()`,
    ),
    timeline: await ask(
      sql<{
        value: string
      }>`select left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) as value`,
    ),
  }
}

type Kept = { seen_time: Date; untrusted_ms: number }

/** Checks the memory, repairs it and says from when on it is trusted. */
const check = async (db: Db, newest: string, isStart: boolean): Promise<Kept> => {
  const { system_identifier, timeline } = await readPlace(db)
  const now = sql.raw('clock_timestamp()')
  const later = sql.raw(`clock_timestamp() + ${distrusted}`)
  const started = sql.raw('pg_postmaster_start_time()')
  // Unknown on either side is not a difference: two services may have roles of different rights.
  const { rows } = await sql<Kept>`
    insert into nonce_memory as m (id, trusted_after, restored_after, seen_time, written_by, written_as,
      system_identifier, timeline, database_oid, server_start_time)
    select 1, ${later}, ${later}, ${now}, pg_current_xact_id()::xid, 'nonce_memory'::regclass::oid,
      ${system_identifier}::text, ${timeline}::text, d.oid, ${started}
    from pg_database d where d.datname = current_database()
    on conflict (id) do update set
      restored_after = case when m.xmin <> m.written_by or m.tableoid <> m.written_as
          or m.written_by is null or m.written_as is null
          or m.system_identifier <> excluded.system_identifier or m.timeline <> excluded.timeline
          or m.database_oid <> excluded.database_oid or m.seen_time < ${newest}::timestamptz
        then ${later}
        -- Nothing was spent since the start: until this check every nonce was refused.
        when m.server_start_time is distinct from ${started}
        then greatest(m.restored_after, ${started} + ${sql.raw(distrusted)})
        else m.restored_after end,
      trusted_after = case when ${isStart}::bool and m.seen_time < ${now} - ${sql.raw(longBreak)}
        then greatest(m.trusted_after, ${now}) else m.trusted_after end,
      seen_time = greatest(m.seen_time, ${now}),
      written_by = excluded.written_by,
      written_as = excluded.written_as,
      system_identifier = coalesce(excluded.system_identifier, m.system_identifier),
      timeline = coalesce(excluded.timeline, m.timeline),
      database_oid = excluded.database_oid,
      server_start_time = excluded.server_start_time
    returning seen_time, ceil(1000 * extract(epoch from
      greatest(trusted_after, coalesce(restored_after, '-infinity'), ${now}) - ${now}))::int
      as untrusted_ms`.execute(db)
  return rows[0] as Kept
}

/**
 * Keeps the one row of `nonce_memory`. It is unlogged: after a crash, on a promoted standby, in a base
 * backup and in a snapshot of the disk it is gone. These look alike, and what an earlier restore left in
 * the row is gone too, so a missing row counts as a restore. In a restored dump, in a copied database and under logical replication it is
 * there, but was written by another transaction, into another table or on another server than it
 * says. In files that were copied while the server was stopped all of this is right. But a server has
 * to start to use them, and a clean restart looks the same from here: so after every start of the
 * server, nonces from before it are refused. A virtual machine that is set back with its memory keeps
 * even its start time. It shows only by a `seen_time` that is older than a running service knows, or
 * old when a service starts.
 */
export const createNonceMemory = (db: Db): NonceMemory => {
  let newest = '-infinity'
  let renewing: Promise<void> | undefined
  let renewAt = Number.NEGATIVE_INFINITY

  const run = async (isStart: boolean): Promise<number> => {
    const { seen_time, untrusted_ms } = await check(db, newest, isStart)
    newest = seen_time.toISOString()
    return untrusted_ms === 0 ? 0 : untrusted_ms + roundingMs
  }

  const renew = async (): Promise<void> => {
    try {
      await run(false)
    } finally {
      renewAt = performance.now() + renewEveryMs
      renewing = undefined
    }
  }

  return {
    begin: () => run(true),
    keep: async () => void (await run(false)),
    renew: async () => {
      // Many requests may find an unsure nonce at once: they share one check, and the next one
      // waits `renewEveryMs`.
      if (!renewing && performance.now() < renewAt) return
      renewing ??= renew()
      await renewing
    },
    newest: () => newest,
  }
}

/** Makes the memory that of an older copy: nonces of up to the next check are refused. */
export const distrustNonces = async (pool: pg.Pool): Promise<void> => {
  await pool.query(`update nonce_memory set written_by = '0'`)
}
