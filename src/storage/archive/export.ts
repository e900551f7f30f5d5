// Export and import of a whole installation as one file. It uses `pg`, `migrations` and the protocol of COPY. An
// export is one snapshot of the database, also of one on several machines. An import is all or nothing: it goes into an empty database and is
// verified by counts and checksums before it commits.

import { createHash } from 'node:crypto'
import { Readable, type Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { constants, createZstdCompress } from 'node:zlib'
import pg from 'pg'
import { to as copyTo } from 'pg-copy-streams'
import manifest from '../../../package.json' with { type: 'json' }
import { readSchemaVersion, readSequences, readTables, type Table } from './catalogue.ts'
import {
  ArchiveError,
  type End,
  formatVersion,
  frameType,
  type Header,
  type TableEnd,
} from './format.ts'
import { encodeFrame, encodeJson } from './frames.ts'
import { inTransaction } from './session.ts'
import { createTally, type OnProgress } from './tally.ts'

/** What an export needs. */
export type ExportOptions = {
  pool: pg.Pool
  out: Writable
  onProgress?: OnProgress | undefined
  signal?: AbortSignal | undefined
}

/** What was moved. */
export type Moved = { tables: number; rows: number; bytes: number; schemaVersion: string }

type Emit = {
  rows: number
  bytes: number
  tablesDone: number
  tableCount: number
  totalRows: number
}

const copyTable = async function* (
  client: pg.PoolClient,
  { name, columns, partitions }: Table,
  sofar: Emit,
  onProgress: OnProgress,
): AsyncGenerator<Buffer> {
  yield encodeJson(frameType.table, { table: name, columns, partitions })
  const tally = createTally()
  const list = columns.map(pg.escapeIdentifier).join(', ')
  // A partitioned table itself cannot be copied, a query over it can.
  const query = `copy (select ${list} from ${pg.escapeIdentifier(name)}) to stdout`
  const stream = client.query(copyTo(query))
  const notify = () =>
    // After each chunk, not each row: a terminal shows a few updates per second.
    onProgress({
      table: name,
      tablesDone: sofar.tablesDone,
      tableCount: sofar.tableCount,
      totalRows: sofar.totalRows,
      rows: sofar.rows + tally.rows(),
      bytes: sofar.bytes + tally.bytes(),
    })
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    tally.add(chunk)
    yield encodeFrame(frameType.data, chunk)
    notify()
  }
  // The server's own count shows rows that were lost between it and here.
  if (tally.rows() !== stream.rowCount) {
    throw new ArchiveError(`${name} gave ${tally.rows()} of ${stream.rowCount} rows.`)
  }
  sofar.rows += tally.rows()
  sofar.bytes += tally.bytes()
  sofar.tablesDone++
  const end: TableEnd = {
    table: name,
    rows: tally.rows(),
    bytes: tally.bytes(),
    sha256: tally.sha256(),
  }
  yield encodeJson(frameType.tableEnd, end)
  onProgress({ table: name, ...sofar })
}

// Of a table without statistics: rows of this size on pages of 8 KiB.
const usualRowBytes = 150

/**
 * An estimate; counting would read every table twice. As the planner does it: the rows per page of the last statistics, and the pages
 * of now, because a table may have grown a hundred times since then.
 */
const estimateRows = async (client: pg.PoolClient): Promise<number> => {
  const { rows } = await client.query<{ count: string }>(
    `select coalesce(sum(case
       when reltuples > 0 and relpages > 0
         then reltuples / relpages * (pg_relation_size(oid) / current_setting('block_size')::int8)
       else pg_relation_size(oid) / ${usualRowBytes} end), 0)::int8 as count
     from pg_class where relkind = 'r' and relnamespace = current_schema()::regnamespace`,
  )
  return Number(rows[0]?.count ?? 0)
}

/** Whether transfers are on several machines. */
const isDistributed = async (pool: pg.Pool): Promise<boolean> => {
  const { rows } = await pool.query(`select to_regclass('pg_dist_partition') as catalogue`)
  if (rows[0].catalogue === null) return false
  const found = await pool.query(
    `select 1 from pg_dist_partition where logicalrelid = to_regclass('transfer')`,
  )
  return found.rows.length > 0
}

const readHeader = async (client: pg.PoolClient, tables: Table[]): Promise<Header> => {
  const schemaVersion = await readSchemaVersion(client)
  if (schemaVersion === undefined) {
    throw new ArchiveError('The database holds no Portolan installation.')
  }
  const { rows } = await client.query(`select current_setting('server_version') as version`)
  return {
    format: 'portolan-archive',
    formatVersion,
    schemaVersion,
    serviceVersion: manifest.version,
    serverVersion: rows[0].version,
    createTime: new Date().toISOString(),
    tableCount: tables.length,
  }
}

const frames = async function* (
  client: pg.PoolClient,
  header: Header,
  tables: Table[],
  sofar: Emit,
  onProgress: OnProgress,
): AsyncGenerator<Buffer> {
  const hash = createHash('sha256')
  // The checksum covers the frames before compression, so that a reader checks what it parsed.
  const pass = (frame: Buffer): Buffer => {
    hash.update(frame)
    return frame
  }
  yield pass(encodeJson(frameType.header, header))
  for (const table of tables) {
    for await (const frame of copyTable(client, table, sofar, onProgress)) yield pass(frame)
  }
  const sequences = await readSequences(client)
  const end: End = { rows: sofar.rows, sequences, sha256: hash.digest('hex') }
  yield encodeJson(frameType.end, end)
}

/**
 * Writes the whole installation, as one moment saw it, as a compressed archive that any later
 * Portolan imports on any PostgreSQL it supports. Sealed secrets are in it as they are: move the
 * master key too, by another way.
 */
export const exportInstallation = async ({
  pool,
  out,
  onProgress = () => {},
  signal = new AbortController().signal,
}: ExportOptions): Promise<Moved> => {
  const exportAll = async (client: pg.PoolClient): Promise<Moved> => {
    // Spent nonces lose their meaning in another database: an import refuses all that are older than it.
    const tables = (await readTables(client)).filter(({ name }) => name !== 'request_nonce')
    const header = await readHeader(client, tables)
    const totalRows = await estimateRows(client)
    const sofar = { rows: 0, bytes: 0, tablesDone: 0, tableCount: tables.length, totalRows }
    const source = Readable.from(frames(client, header, tables, sofar, onProgress), {
      objectMode: false,
    })
    // The checksum of zstd finds damage of the compressed file before the frames are parsed.
    const compress = createZstdCompress({ params: { [constants.ZSTD_c_checksumFlag]: 1 } })
    await pipeline(source, compress, out, { signal })
    const { schemaVersion } = header
    return { tables: tables.length, rows: sofar.rows, bytes: sofar.bytes, schemaVersion }
  }
  // Citus has no snapshot over several machines. Without the lock an archive had none of the transfers that were deleted meanwhile,
  // beside everything else as it was before.
  const held = (await isDistributed(pool)) ? 'transfer' : undefined
  return await inTransaction(pool, 'repeatable read, read only', signal, exportAll, held)
}
