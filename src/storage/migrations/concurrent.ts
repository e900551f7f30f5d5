import { setTimeout as delay } from 'node:timers/promises'
import { type Kysely, sql } from 'kysely'
import { withLockTimeout } from './lock-timeout.ts'
import { type IndexStatement, isRepeatable, parseIndex, splitStatements } from './statements.ts'

// biome-ignore lint/suspicious/noExplicitAny: migrations run before there is a schema to type
type AnyDb = Kysely<any>

/** How far the build of an index is. Both numbers are 0 where the phase has no size. */
export type BuildProgress = { index: string; phase: string; done: number; total: number }

type Tools = {
  /** Other connections of the same database, for the progress. */
  db: AnyDb
  /** The session that holds the lock of migrations. */
  session: AnyDb
  onBuild?: ((progress: BuildProgress) => void) | undefined
  pollMs?: number
}

/**
 * Runs a file outside of a transaction. Every statement can be repeated: a process that is killed leaves at most an
 * invalid index, which the next attempt drops and builds again.
 */
export async function runConcurrently(text: string, tools: Tools): Promise<void> {
  for (const statement of splitStatements(text)) {
    if (!isRepeatable(statement))
      throw new Error(`"${statement.slice(0, 80)}" cannot run outside of a transaction`)
    const index = parseIndex(statement)
    if (!index) await sql.raw(statement).execute(tools.session)
    else if (await isPartitioned(tools.session, index.table)) await buildOnPartitions(index, tools)
    else await buildIndex(index, tools)
  }
}

const isPartitioned = async (session: AnyDb, table: string): Promise<boolean> => {
  const { rows } = await sql<{ kind: string }>`
    select relkind::text as kind from pg_class where oid = to_regclass(${table})`.execute(session)
  return rows[0]?.kind === 'p'
}

/** Undefined where there is no such index. */
const isValid = async (session: AnyDb, index: string): Promise<boolean | undefined> => {
  const { rows } = await sql<{ valid: boolean }>`
    select indisvalid as valid from pg_index where indexrelid = to_regclass(${index})`.execute(
    session,
  )
  return rows[0]?.valid
}

async function buildIndex(index: IndexStatement, tools: Tools): Promise<void> {
  const { unique, name, table, rest } = index
  const { session } = tools
  const valid = await isValid(session, name)
  if (valid) return
  if (valid === false) await sql.raw(`drop index concurrently ${name}`).execute(session)
  await watchBuild(name, tools, async () => {
    await sql.raw(`create ${unique}index concurrently ${name} on ${table} ${rest}`).execute(session)
  })
  if (!(await isValid(session, name))) throw new Error(`the index ${name} is invalid`)
}

/**
 * PostgreSQL builds no index on a partitioned table concurrently. So the index of the table is created without its
 * partitions, and each partition gets its own. It is valid with the last one. Partitions that are created meanwhile get
 * theirs from the table.
 */
async function buildOnPartitions(index: IndexStatement, tools: Tools): Promise<void> {
  const { unique, name, table, rest } = index
  const { session } = tools
  const create = `create ${unique}index if not exists ${name} on only ${table} ${rest}`
  await withLockTimeout(session, async (trx) => void (await sql.raw(create).execute(trx)))
  for (const partition of await listWithoutIndex(session, name, table)) {
    const own = `${name}${partition.slice(table.length)}`
    await buildIndex({ unique, name: own, table: partition, rest }, tools)
    const attach = `alter index ${name} attach partition ${own}`
    await withLockTimeout(session, async (trx) => void (await sql.raw(attach).execute(trx)))
  }
  if (!(await isValid(session, name))) throw new Error(`the index ${name} is invalid`)
}

const listWithoutIndex = async (
  session: AnyDb,
  index: string,
  table: string,
): Promise<string[]> => {
  const { rows } = await sql<{ name: string }>`
    select c.relname as name from pg_inherits p join pg_class c on c.oid = p.inhrelid
    where p.inhparent = to_regclass(${table}) and not exists (
      select from pg_inherits i join pg_index x on x.indexrelid = i.inhrelid
      where i.inhparent = to_regclass(${index}) and x.indrelid = c.oid)
    order by c.relname`.execute(session)
  return rows.map(({ name }) => name)
}

/** Reports the progress that the server publishes while the work runs. */
async function watchBuild(
  index: string,
  { db, session, onBuild, pollMs = 500 }: Tools,
  work: () => Promise<void>,
): Promise<void> {
  if (!onBuild) return await work()
  const over = new AbortController()
  const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(session)
  const pid = rows[0]?.pid ?? 0
  const look = async () => {
    while (!over.signal.aborted) {
      const found = await readProgress(db, pid)
      if (found && !over.signal.aborted) onBuild({ index, ...found })
      await delay(pollMs, undefined, { signal: over.signal })
    }
  }
  onBuild({ index, phase: 'starting', done: 0, total: 0 })
  // Not waited for: the pool may have no other connection until the work is done.
  look().catch(() => {})
  try {
    await work()
  } finally {
    over.abort()
  }
}

const readProgress = async (db: AnyDb, pid: number) => {
  const { rows } = await sql<{ phase: string; done: number; total: number }>`
    select phase,
      (case when blocks_total > 0 then blocks_done else tuples_done end)::float8 as done,
      (case when blocks_total > 0 then blocks_total else tuples_total end)::float8 as total
    from pg_stat_progress_create_index where pid = ${pid}`.execute(db)
  return rows[0]
}
