// Connections and statements of PostgreSQL: pools, shares of a pool, prepared statements, bulk inserts,
// partitions, notifications and errors. It uses the driver and Kysely, and knows no table of the domain except
// for the list of their columns. Every statement has a time limit, and the loss of a connection never ends the
// process.

import { Kysely, PostgresDialect, sql } from 'kysely'
import pg from 'pg'
import type { Log } from '../../lib/log.ts'
import { createOutage } from '../../lib/outage.ts'
import type { Tracing } from '../../lib/tracing.ts'
import { isDatabaseUnavailable } from './errors.ts'
import { withLocalSettings, withPrepared } from './prepared.ts'
import { createShares } from './shares.ts'
import type { Tables } from './tables.ts'

/** A way to the server, as `pg` takes it; a connection string wins over the rest. */
export type Connection = {
  connectionString?: string
  host?: string
  port?: number
  user?: string
  database?: string
  password?: string
  /**
   * The connection leads to a pooler in transaction mode, which gives each transaction another session: nothing is
   * prepared, and settings are those of a transaction.
   */
  isPooled?: boolean
}

/** What every storage function takes: the database, or a transaction of it. */
export type Db = Kysely<Tables>

/** An open database. */
export type Database = {
  db: Db
  pool: pg.Pool
  /** The same for one caller, which can use up its share of the connections only. */
  shareOf(key: string): Db
  stop(): Promise<void>
}

// Of ten connections one caller has eight, and two beside others: those that misbehave leave some to them. With four while it
// is alone, a request of 32 connections took 10 % more CPU (236 and 241 µs instead of 220 and 213): fewer answers come in one turn.
const shareAlone = 0.8
const shareBeside = 0.2
const usualConnectTimeoutMs = 5_000
// Long: a new connection knows no table and no plan yet, which took its first statements 15 to 40 ms each. After 30 seconds,
// every burst of requests opened some.
const idleTimeoutMs = 600_000
// A parallel plan takes several cores of a database that all organizations share for the statement of one of them.
const noParallelPlans = 'max_parallel_workers_per_gather = 0'
// A writer put to sleep inside a transaction holds the lease's row: it must not hold it for long.
const idleInTransactionMs = 15_000

type Parser = (value: string) => unknown

const parseInt8: Parser = (value) => {
  const number = Number(value)
  if (!Number.isSafeInteger(number)) throw new RangeError(`int8 ${value} does not fit a number`)
  return number
}

const asText: Parser = (value) => value

// Of this pool only: a global parser would change other users of pg in the same process.
const parsers = new Map<number, Parser>([
  [pg.types.builtins.INT8, parseInt8],
  [pg.types.builtins.NUMERIC, BigInt],
  // The driver would make midnight in the machine's own time zone of it.
  [pg.types.builtins.DATE, asText],
])

/** How values of the server become values of ours: int8 number, numeric bigint, date text. */
export const typeParsers: pg.CustomTypesConfig = {
  getTypeParser: ((oid: number, format?: 'text' | 'binary') =>
    (format !== 'binary' && parsers.get(oid)) ||
    pg.types.getTypeParser(oid, format as 'text')) as pg.CustomTypesConfig['getTypeParser'],
}

/** Opens a pool of connections. Nothing is connected until the first statement. */
export const openDatabase = (options: {
  connection: Connection
  log: Log
  max?: number
  statementTimeoutMs?: number
  /** How long a statement waits for a connection. */
  connectTimeoutMs?: number
  /** Statements become parts of the current trace. */
  tracing?: Tracing | undefined
}): Database => {
  const { connection, log, max = 10, statementTimeoutMs = 30_000 } = options
  const { connectTimeoutMs = usualConnectTimeoutMs } = options
  const pool = new pg.Pool({
    ...connection,
    max,
    types: typeParsers,
    application_name: 'portolan',
    connectionTimeoutMillis: connectTimeoutMs,
    idleTimeoutMillis: idleTimeoutMs,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    // A pooler refuses these at the start of a connection: there they are set in each transaction.
    ...(!connection.isPooled && {
      statement_timeout: statementTimeoutMs,
      idle_in_transaction_session_timeout: idleInTransactionMs,
      // The driver reads the variable only where there are no options. Those of a connection string replace both.
      options: `${process.env.PGOPTIONS ?? ''} -c ${noParallelPlans.replaceAll(' ', '')}`.trim(),
    }),
  })
  let stopped: Promise<void> | undefined
  const outage = createOutage({
    ...{ log, now: Date.now },
    begins: 'idle database connection lost',
    ends: 'database connected again',
    isPlain: isDatabaseUnavailable,
  })
  // The loss of an idle connection must not end the process: the pool opens another one.
  pool.on('error', (error) => {
    // The pool does not wait for the goodbye of its connections; an embedded server may be quicker.
    if (!stopped) outage.failed(error)
  })
  pool.on('connect', (client) => {
    outage.recovered()
    // Between a statement's error and the connection's end the pool does not listen.
    client.on('error', (error) => log.debug({ err: error }, 'database connection lost'))
  })
  const { tracing } = options
  const local = [
    `statement_timeout = ${statementTimeoutMs}`,
    `idle_in_transaction_session_timeout = ${idleInTransactionMs}`,
    noParallelPlans,
  ]
  const prepared = connection.isPooled
    ? withLocalSettings(pool, local, tracing)
    : withPrepared(pool, tracing)
  const db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool: prepared }) })
  const of = (share: number) => Math.max(1, Math.floor(max * share))
  const shareOf = createShares(prepared, {
    ...{ alone: of(shareAlone), beside: of(shareBeside), timeoutMs: connectTimeoutMs },
  })
  const stop = (): Promise<void> => {
    stopped ??= pool.end()
    return stopped
  }
  return { db, pool, shareOf, stop }
}

/** The server is older than what the SQL is written for. */
export class OldServerError extends Error {
  override name = 'OldServerError'
}

const oldest = 15

/** Refuses a PostgreSQL that is too old, before anything is written to it. */
export const checkServerVersion = async (db: Db): Promise<void> => {
  const { rows } = await sql<{ version: number; name: string }>`
    select current_setting('server_version_num')::int4 as version,
      current_setting('server_version') as name`.execute(db)
  const { version = 0, name = '' } = rows[0] ?? {}
  if (version < oldest * 10_000)
    throw new OldServerError(
      `The database is PostgreSQL ${name}, but Portolan needs ${oldest} or newer.`,
    )
}
