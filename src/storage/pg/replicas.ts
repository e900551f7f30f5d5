// Reads on replicas, with two guarantees. An answer is at most a second old: the primary's position is sampled, and a
// replica counts as fresh when it has replayed the oldest sample within that second. And an organization reads its own
// writes: each write records its position in a row of the primary, which is read before a replica is chosen.

import { sql } from 'kysely'
import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import { type Connection, type Database, type Db, openDatabase } from './database.ts'
import { isDatabaseUnavailable } from './errors.ts'
import { prepared } from './prepared.ts'

/** Read replicas of the database, for lists that may be a second old. */
export type Replicas = {
  /** Reads from a replica where one has all that the organization has written; else from the primary. */
  read<answer>(
    organization_id: string,
    primary: Db,
    work: (db: Db) => Promise<answer>,
  ): Promise<answer>
  /** Records that an organization has written. To be awaited before the caller is answered. */
  wrote(organization_id: string): Promise<void>
  status(): ReplicaStatus[]
  stop(): Promise<void>
}

/** What is known of a replica. */
export type ReplicaStatus = {
  state: 'fresh' | 'lagging' | 'unreachable' | 'promoted' | 'foreign'
  read_count: number
  fallback_count: number
}

/** How to open replicas. */
export type ReplicasOptions = {
  primary: Db
  connections: readonly Connection[]
  clock: Clock
  log: Log
  /** Connections to each replica at most. */
  max: number
  statementTimeoutMs: number
  /** How old an answer may be. */
  maxAgeMs?: number
  /** How often replicas and the primary are asked for their positions. */
  pollMs?: number
}

type Sample = { time: number; lsn: number }

type Replica = ReplicaStatus & { database: Database; lsn: number; system_id: string | null }

// Writes of an organization that are older do not matter: a fresh replica has them.
const rememberedInterval = "interval '1 minute'"

/** Opens replicas and follows how far they are. */
export function openReplicas(options: ReplicasOptions): Replicas {
  const { primary, connections, clock, log, max, statementTimeoutMs } = options
  const { maxAgeMs = 1_000, pollMs = 200 } = options
  const stopping = new AbortController()
  const samples: Sample[] = []
  let system_id: string | null | undefined
  let turn = 0

  const replicas = connections.map(
    (connection): Replica => ({
      database: openDatabase({ connection, log, max, statementTimeoutMs }),
      ...{ state: 'unreachable', lsn: 0, system_id: null, read_count: 0, fallback_count: 0 },
    }),
  )

  /** Where the primary was at a time that is not too long ago. Who has replayed that is fresh. */
  const freshLsn = (): number | undefined => {
    const since = clock.now() - maxAgeMs
    while (samples[0] && samples[0].time < since) samples.shift()
    return samples[0]?.lsn
  }

  const setState = (replica: Replica, state: Replica['state']): void => {
    const before = replica.state
    replica.state = state
    if (before === state) return
    const index = replicas.indexOf(replica)
    if (state === 'promoted' || state === 'foreign')
      log.error({ replica: index, state }, 'replica is not used: it does not follow the primary')
    else log.info({ replica: index, state }, 'state of a replica changed')
  }

  const poll = async (replica: Replica): Promise<void> => {
    try {
      const { rows } = await sql<{ is_standby: boolean; lsn: number | null }>`
        select pg_is_in_recovery() as is_standby,
          (pg_last_wal_replay_lsn() - '0/0')::int8 as lsn`.execute(replica.database.db)
      const { is_standby = false, lsn = null } = rows[0] ?? {}
      // Asked once per connection: a cluster keeps its identifier.
      replica.system_id ??= await readSystemId(replica.database.db)
      if (!is_standby) return setState(replica, 'promoted')
      if (system_id && replica.system_id && system_id !== replica.system_id)
        return setState(replica, 'foreign')
      replica.lsn = lsn ?? 0
      const needed = freshLsn()
      setState(replica, needed !== undefined && replica.lsn >= needed ? 'fresh' : 'lagging')
    } catch (error) {
      if (!stopping.signal.aborted) log.debug({ err: error }, 'replica cannot be asked')
      // A server that comes back may be another one.
      replica.system_id = null
      setState(replica, 'unreachable')
    }
  }

  const sample = async (): Promise<void> => {
    const time = clock.now()
    const { rows } = await sql<{ lsn: number }>`
      select (pg_current_wal_insert_lsn() - '0/0')::int8 as lsn`.execute(primary)
    system_id ??= await readSystemId(primary)
    if (rows[0]) samples.push({ time, lsn: rows[0].lsn })
  }

  // Each has its own loop: a replica that hangs delays no other.
  const repeat = async (work: () => Promise<void>): Promise<void> => {
    while (!stopping.signal.aborted) {
      await work().catch((error: unknown) => log.debug({ err: error }, 'positions are unknown'))
      await clock.sleep(pollMs, stopping.signal).catch(() => {})
    }
  }
  const running = Promise.all([repeat(sample), ...replicas.map((one) => repeat(() => poll(one)))])

  const findWritten = async (organization_id: string): Promise<number> => {
    const { rows } = await sql<{ lsn: number }>`${sql.raw(prepared)}
      select lsn from organization_write
      where organization_id = ${organization_id}
        and write_time > clock_timestamp() - ${sql.raw(rememberedInterval)}`.execute(primary)
    return rows[0]?.lsn ?? 0
  }

  const choose = async (organization_id: string): Promise<Replica | undefined> => {
    // The position is as of the last poll, so that a replica which stopped since is found out in time.
    const usable = () => {
      const needed = freshLsn()
      return needed === undefined
        ? []
        : replicas.filter(({ state, lsn }) => state === 'fresh' && lsn >= needed)
    }
    if (usable().length === 0) return undefined
    const written = await findWritten(organization_id)
    const fit = usable().filter(({ lsn }) => lsn >= written)
    // In turn, so that replicas share the load without a measure of it.
    turn = (turn + 1) % Math.max(1, fit.length)
    return fit[turn]
  }

  return {
    read: async (organization_id, db, work) => {
      const replica = await choose(organization_id)
      if (!replica) return await work(db)
      try {
        const answer = await work(replica.database.shareOf(organization_id))
        replica.read_count++
        return answer
      } catch (error) {
        if (!isDatabaseUnavailable(error)) throw error
        // Gone, restarting, or the statement stood in the way of replay (40001).
        replica.fallback_count++
        if ((error as { code?: string }).code !== '40001') setState(replica, 'unreachable')
        return await work(db)
      }
    },
    wrote: async (organization_id) => {
      // It does not wait for the disk: after a crash nothing newer than the disk is shown anywhere.
      await sql`
        insert into organization_write as w (organization_id, lsn, write_time)
        select ${organization_id}, (pg_current_wal_insert_lsn() - '0/0')::int8, clock_timestamp()
        from (select set_config('synchronous_commit', 'off', true)) s
        on conflict (organization_id) do update set write_time = excluded.write_time,
          lsn = excluded.lsn
        where w.lsn < excluded.lsn or w.write_time < excluded.write_time - ${sql.raw(rememberedInterval)}`.execute(
        primary,
      )
    },
    status: () =>
      replicas.map(({ state, read_count, fallback_count }) => ({
        state,
        read_count,
        fallback_count,
      })),
    stop: async () => {
      stopping.abort()
      await running
      await Promise.all(replicas.map(({ database }) => database.stop()))
    },
  }
}

/** Of the cluster; null where the role may not read it. */
const readSystemId = async (db: Db): Promise<string | null> => {
  try {
    const { rows } = await sql<{ value: string }>`
      select system_identifier::text as value from pg_control_system()`.execute(db)
    return rows[0]?.value ?? null
  } catch (error) {
    if (isDatabaseUnavailable(error)) throw error
    return null
  }
}
