import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { Kysely, PostgresDialect } from 'kysely'
import pg from 'pg'
import { from as copyFrom } from 'pg-copy-streams'
import type { Log } from '../../lib/log.ts'
import { distrustNonces } from '../access/nonce-memory.ts'
import { readMigrations } from '../migrations/files.ts'
import { migrateDatabase } from '../migrations/migrate.ts'
import { type ArchiveReader, openArchive } from './archive-reader.ts'
import {
  type ForeignKey,
  readForeignKeys,
  readSchemaVersion,
  readTables,
  type Table,
} from './catalogue.ts'
import type { Moved } from './export.ts'
import {
  ArchiveError,
  type End,
  type Header,
  parseHeader,
  type TableEnd,
  type TableHead,
} from './format.ts'
import { createPartitionStatement } from './partitions.ts'
import { inTransaction } from './session.ts'
import { createTally, type OnProgress } from './tally.ts'

/** What an import needs. */
export type ImportOptions = {
  pool: pg.Pool
  in: Readable
  log: Log
  onProgress?: OnProgress | undefined
  signal?: AbortSignal | undefined
}

// Names of tables come from the archive, which a person may have edited.
const quote = pg.escapeIdentifier
// The condition `lock_not_available`: the session has a lock timeout of ten seconds.
const lockNotAvailable = '55P03'

// A database without tables gets the schema that the archive was made with, so that its rows fit;
// later migrations then change them as they would have done in place.
const prepareSchema = async (pool: pg.Pool, header: Header, log: Log) => {
  const db = new Kysely<unknown>({ dialect: new PostgresDialect({ pool }) })
  const known = await readMigrations()
  const at = known.findIndex(({ name }) => name === header.schemaVersion)
  if (at === -1) {
    throw new ArchiveError(
      `The archive has schema version ${header.schemaVersion}, which this Portolan does not know: ` +
        `it was made by a newer version (${header.serviceVersion}), or by a preview before 0.1.0, which cannot be imported.`,
    )
  }
  const present = await pool.query(`select to_regclass('public.schema_migration') as name`)
  if (present.rows[0].name === null) {
    await migrateDatabase(db, { log, files: known.slice(0, at + 1) })
  }
  return () => migrateDatabase(db, { log })
}

// The exclusive lock also keeps a service out that starts during the import.
const claimEmptyTables = async (client: pg.PoolClient, tables: Table[]): Promise<void> => {
  const names = tables.map(({ name }) => quote(name))
  try {
    await client.query(`lock table ${names.join(', ')} in access exclusive mode`)
  } catch (error) {
    if ((error as { code?: string }).code !== lockNotAvailable) throw error
    throw new ArchiveError('Another process is using the database; stop it first.')
  }
  for (const { name } of tables) {
    const { rows } = await client.query(`select exists (select 1 from ${quote(name)}) as filled`)
    if (rows[0].filled) {
      throw new ArchiveError(
        `An archive is imported into an empty database only, and the table ${name} has rows.`,
      )
    }
  }
}

const checkVersion = async (client: pg.PoolClient, header: Header): Promise<void> => {
  const version = await readSchemaVersion(client)
  if (version === header.schemaVersion) return
  throw new ArchiveError(
    `The archive has schema version ${header.schemaVersion} and the database ${version}; ` +
      'import into a database without tables, which is brought to the right version by itself.',
  )
}

// Columns are compared as a set: their order may differ after migrations.
const matchTable = (tables: Table[], head: TableHead): Table => {
  const table = tables.find(({ name }) => name === head.table)
  const same = table && [...table.columns].sort().join() === [...head.columns].sort().join()
  if (same) return table
  throw new ArchiveError(`The table ${head.table} of the archive does not fit the database.`)
}

// Partitions are created as time passes, so the archive may have some that a new database lacks.
const createPartitions = async (client: pg.PoolClient, table: Table, head: TableHead) => {
  // By name: names contain the month, so that equal names are equal bounds.
  const present = new Set(table.partitions.map(({ name }) => name))
  for (const partition of head.partitions) {
    if (!present.has(partition.name)) await client.query(createPartitionStatement(partition))
  }
}

const copyTable = async (
  client: pg.PoolClient,
  reader: ArchiveReader,
  head: TableHead,
  onRows: (rows: number, bytes: number) => void,
  signal: AbortSignal,
): Promise<{ rows: number; bytes: number }> => {
  const tally = createTally()
  let end: TableEnd | undefined
  const count = async function* () {
    const rows = reader.rows((given) => {
      end = given
    })
    for await (const chunk of rows) {
      tally.add(chunk)
      yield chunk
      onRows(tally.rows(), tally.bytes())
    }
  }
  // The columns of the archive, by name: the database may have them in another order.
  const columns = head.columns.map(quote).join(', ')
  const sink = client.query(copyFrom(`copy ${quote(head.table)} (${columns}) from stdin`))
  await pipeline(Readable.from(count(), { objectMode: false }), sink, { signal })
  // Three independent counts: what the archive states, what was read, and what the server stored.
  const [rows, bytes] = [tally.rows(), tally.bytes()]
  if (end?.rows !== rows || sink.rowCount !== rows || end.sha256 !== tally.sha256()) {
    throw new ArchiveError(`The rows of ${head.table} did not arrive as they left.`)
  }
  return { rows, bytes }
}

const dropForeignKeys = async (client: pg.PoolClient, keys: ForeignKey[]): Promise<void> => {
  for (const { table, name } of keys) {
    await client.query(`alter table ${quote(table)} drop constraint ${quote(name)}`)
  }
}

const restoreForeignKeys = async (client: pg.PoolClient, keys: ForeignKey[]): Promise<void> => {
  for (const { table, name, definition } of keys) {
    await client.query(`alter table ${quote(table)} add constraint ${quote(name)} ${definition}`)
  }
}

const setSequences = async (client: pg.PoolClient, { sequences }: End): Promise<void> => {
  for (const { name, lastValue } of sequences) {
    await client.query('select setval(format($1, $2::text)::regclass, $3)', [
      'public.%I',
      name,
      lastValue,
    ])
  }
}

const load = async (
  client: pg.PoolClient,
  reader: ArchiveReader,
  header: Header,
  onProgress: OnProgress,
  signal: AbortSignal,
): Promise<Moved> => {
  await checkVersion(client, header)
  const tables = await readTables(client)
  await claimEmptyTables(client, tables)
  // Whatever the archive says, it is compared with the schema here: it can only fill tables that exist.
  // Checked once at the end rather than row by row: faster, without a queue in the server's memory,
  // and right for tables that refer to each other in any order.
  const keys = await readForeignKeys(client)
  await dropForeignKeys(client, keys)
  const sofar = { rows: 0, bytes: 0, tablesDone: 0, tableCount: header.tableCount }
  for (;;) {
    const section = await reader.next()
    if ('end' in section) {
      if (section.end.rows !== sofar.rows || sofar.tablesDone !== header.tableCount) {
        throw new ArchiveError('The archive lacks tables or rows that it should have.')
      }
      await restoreForeignKeys(client, keys)
      // Last, because the server does not roll back sequences.
      await setSequences(client, section.end)
      const { rows, bytes, tablesDone } = sofar
      return { tables: tablesDone, rows, bytes, schemaVersion: header.schemaVersion }
    }
    const head = section.table
    await createPartitions(client, matchTable(tables, head), head)
    const notify = (rows: number, bytes: number) =>
      onProgress({
        ...sofar,
        table: head.table,
        rows: sofar.rows + rows,
        bytes: sofar.bytes + bytes,
      })
    const moved = await copyTable(client, reader, head, notify, signal)
    sofar.rows += moved.rows
    sofar.bytes += moved.bytes
    sofar.tablesDone++
    onProgress({ ...sofar, table: head.table })
  }
}

/**
 * Statistics of an empty database would make the first queries read whole tables. In a transaction of its own: Citus analyzes
 * no table that the same transaction has filled. The rows are there already, so a failure is only logged.
 */
const analyze = async (pool: pg.Pool, log: Log, signal: AbortSignal): Promise<void> => {
  const act = async (client: pg.PoolClient) => {
    const tables = await readTables(client)
    await client.query(`analyze ${tables.map(({ name }) => quote(name)).join(', ')}`)
  }
  await inTransaction(pool, 'read committed, read write', signal, act).catch((error: unknown) =>
    log.warn(
      { err: error },
      'the imported tables have no statistics yet; run "analyze" in the database',
    ),
  )
}

/**
 * Reads an archive into an empty database, all of it or nothing, and migrates it to this
 * Portolan's schema. The master key that sealed the secrets must be moved too, by another way.
 */
export const importInstallation = async ({
  pool,
  in: source,
  log,
  onProgress = () => {},
  signal = new AbortController().signal,
}: ImportOptions): Promise<Moved> => {
  const reader = openArchive(source, signal)
  try {
    const header = parseHeader(await reader.header())
    const migrateFurther = await prepareSchema(pool, header, log)
    // One transaction for all rows: a failed import leaves an empty database.
    const moved = await inTransaction(pool, 'read committed, read write', signal, (client) =>
      load(client, reader, header, onProgress, signal),
    )
    // The archive is older than the last request of the old installation: nonces spent since are unknown here.
    await distrustNonces(pool)
    await migrateFurther()
    await analyze(pool, log, signal)
    return moved
  } finally {
    source.destroy()
  }
}
