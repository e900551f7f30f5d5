import { PassThrough, Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import { beforeAll, describe, expect, test } from 'vitest'
import {
  emptyDatabase,
  type FreshDatabase,
  freshDatabase,
  hasEngine,
} from '../../../test/helpers/database.ts'
import { silentLog } from '../../lib/log.ts'
import { createNonceMemory } from '../access/nonce-memory.ts'
import { readMigrations } from '../migrations/files.ts'
import { migrateDatabase } from '../migrations/migrate.ts'
import { ensurePartitionsBetween } from '../pg/partitions.ts'
import { exportInstallation } from './export.ts'
import { importInstallation } from './import.ts'
import type { Progress } from './tally.ts'
import { digestTables, fillTables } from './testing/test-rows.ts'

const rowsPerTable = 40
const flips = 20

// What the service's own schema does not have yet, but a later migration may.
const extras = `
  create table extra_node (id int8 generated always as identity primary key, "Odd name" text,
    parent int8 references extra_node, doubled int8 generated always as (length("Odd name") * 2) stored);
  create table extra_left (id int4 primary key, other int4);
  create table extra_right (id int4 primary key, other int4 references extra_left);
  alter table extra_left add constraint circle foreign key (other) references extra_right;
  create table extra_nested (at date, kind text, n float8) partition by range (at);`

const extraRows = `
  insert into extra_node ("Odd name", parent) select repeat('x', i), nullif(i - 1, 0) from generate_series(1, 50) i;
  insert into extra_left select 1, null; insert into extra_right select 1, 1; update extra_left set other = 1;
  create table extra_2026 partition of extra_nested for values from ('2026-01-01') to ('2027-01-01') partition by list (kind);
  create table "extra 2026 a" partition of extra_2026 for values in ('it''s', 'b') with (fillfactor = 70);
  create table extra_2026_rest partition of extra_2026 default;
  insert into extra_nested values ('2026-05-01', 'it''s', 0.1), ('2026-05-02', 'c', 'NaN'), ('2026-05-03', 'd', 1e-300);`

const archiveOf = async (database: FreshDatabase): Promise<Buffer> => {
  const out = new PassThrough()
  const [bytes] = await Promise.all([buffer(out), exportInstallation({ pool: database.pool, out })])
  return bytes
}

const importInto = (database: FreshDatabase, archive: Buffer) =>
  importInstallation({ pool: database.pool, in: Readable.from([archive]), log: silentLog })

const isEmpty = async (database: FreshDatabase): Promise<boolean> =>
  Object.values(await digestTables(database.pool)).every((digest) => digest === '0 -')

const columnsOf = async ({ pool }: FreshDatabase): Promise<Map<string, string>> => {
  const { rows } = await pool.query<{ table_name: string; columns: string }>(
    `select table_name, string_agg(column_name, ',' order by column_name) as columns
    from information_schema.columns where table_schema = current_schema() group by table_name`,
  )
  return new Map(rows.map(({ table_name, columns }) => [table_name, columns]))
}

const noncesIn = async ({ pool }: FreshDatabase): Promise<number> =>
  (await pool.query('select count(*)::int as count from request_nonce')).rows[0].count

const fill = async (database: FreshDatabase): Promise<void> => {
  const [from, to] = [new Date('2026-09-01'), new Date('2026-12-01')]
  await ensurePartitionsBetween(database.db, from, to)
  await fillTables(database.pool, rowsPerTable)
}

const directions = [
  ['embedded', 'system'],
  ['system', 'embedded'],
] as const

describe.each(directions)('from %s to %s PostgreSQL', (from, to) => {
  test.skipIf(!hasEngine(from) || !hasEngine(to))('moves every row of every table', async () => {
    const [source, target] = [await freshDatabase(from), await freshDatabase(to)]
    await fill(source)
    await Promise.all([source.pool.query(extras), target.pool.query(extras)])
    await source.pool.query(extraRows)
    const seen: Progress[] = []
    const out = new PassThrough()
    const [archive, exported] = await Promise.all([
      buffer(out),
      exportInstallation({ pool: source.pool, out, onProgress: (step) => seen.push(step) }),
    ])
    const imported = await importInto(target, archive)

    expect(imported).toEqual(exported)
    const digests = await digestTables(target.pool)
    expect(digests).toEqual(await digestTables(source.pool))
    expect(await noncesIn(source)).toBeGreaterThan(0)
    expect(await noncesIn(target)).toBe(0)
    // Nonces spent at the source are unknown here, so that none of that time is accepted.
    expect(await createNonceMemory(target.db).begin()).toBeGreaterThan(1_000)
    expect(Object.values(digests).filter((digest) => digest.startsWith('0 '))).toEqual([])
    expect(seen.at(-1)).toMatchObject({ tablesDone: exported.tables, rows: exported.rows })

    const next = `insert into extra_node ("Odd name") values ('next') returning id`
    expect((await target.pool.query(next)).rows[0].id).toBe(51)
    const orphan = target.pool.query('insert into extra_right values (9, 9)')
    await expect(orphan).rejects.toThrow(/foreign key/)
  })
})

describe('an archive', () => {
  let source: FreshDatabase
  let archive: Buffer

  beforeAll(async () => {
    source = await freshDatabase()
    await fill(source)
    archive = await archiveOf(source)
    return source.stop
  })

  test('goes into a database without tables', async () => {
    const target = await emptyDatabase()
    await importInto(target, archive)
    expect(await digestTables(target.pool)).toEqual(await digestTables(source.pool))
  })

  test('of an older schema is migrated after the import', async () => {
    const [older, target] = [await emptyDatabase(), await emptyDatabase()]
    const files = await readMigrations()
    // Enough tables that no later migration changes, and none with partitions.
    const first = files.slice(0, 2)
    await migrateDatabase(older.db, { log: silentLog, files: first })
    await fillTables(older.pool, 3)
    const { schemaVersion } = await importInto(target, await archiveOf(older))
    expect(schemaVersion).toBe(first.at(-1)?.name)
    // Tables that later migrations gave more columns have other digests.
    const [before, after] = [await columnsOf(older), await columnsOf(target)]
    const expected = Object.entries(await digestTables(older.pool)).filter(
      ([table]) => before.get(table) === after.get(table),
    )
    expect(expected.length).toBeGreaterThan(4)
    expect(await digestTables(target.pool)).toMatchObject(Object.fromEntries(expected))
    expect(await migrateDatabase(target.db, { log: silentLog })).toEqual({ applied: [] })
  })

  test('of a preview is refused', async () => {
    const [preview, target] = [await emptyDatabase(), await emptyDatabase()]
    const file = {
      name: '0212-nonce-memory-server-start',
      sql: 'create table chain (chain_id int2)',
    }
    await migrateDatabase(preview.db, { log: silentLog, files: [file] })
    await expect(importInto(target, await archiveOf(preview))).rejects.toThrow(
      'a preview before 0.1.0, which cannot be imported',
    )
  })

  test('is refused by a database that has rows', async () => {
    const target = await freshDatabase()
    await fillTables(target.pool, 0)
    await target.pool.query(`insert into lease values ('x', gen_random_uuid(), 1, now())`)
    const before = await digestTables(target.pool)
    await expect(importInto(target, archive)).rejects.toThrow('the table lease has rows')
    expect(await digestTables(target.pool)).toEqual(before)
  })

  test('cut off anywhere leaves nothing', async () => {
    const target = await freshDatabase()
    const half = Math.trunc(archive.length / 2)
    for (const end of [0, 1, 10, 100, half, archive.length - 20, archive.length - 1]) {
      const part = archive.subarray(0, end)
      await expect(importInto(target, part), `${end} bytes`).rejects.toThrow(/^The (archive|file)/)
    }
    expect(await isEmpty(target)).toBe(true)
  })

  test('with any flipped bit leaves nothing', async () => {
    const target = await freshDatabase()
    for (let step = 0; step < flips; step++) {
      const damaged = Buffer.from(archive)
      const at = Math.trunc((archive.length * step) / flips)
      damaged[at] = damaged[at]! ^ (1 << (step % 8))
      await expect(importInto(target, damaged), `byte ${at}`).rejects.toThrow()
    }
    expect(await isEmpty(target)).toBe(true)
  })

  test('with a changed row below the compression leaves nothing', async () => {
    const target = await freshDatabase()
    const plain = zstdDecompressSync(archive)
    const at = plain.indexOf('plain-7')
    plain.write('plain-x', at)
    await expect(importInto(target, zstdCompressSync(plain))).rejects.toThrow(
      /did not arrive|damaged/,
    )
    expect(await isEmpty(target)).toBe(true)
  })

  test('that is something else is called so', async () => {
    const target = await freshDatabase()
    const text = Buffer.from('select 1;\n'.repeat(100))
    await expect(importInto(target, text)).rejects.toThrow('is not a Portolan archive')
  })

  test('can be given up in the middle', async () => {
    const target = await freshDatabase()
    const giveUp = new AbortController()
    const importing = importInstallation({
      pool: target.pool,
      in: Readable.from([archive]),
      log: silentLog,
      onProgress: ({ tablesDone }) => tablesDone === 5 && giveUp.abort(new Error('enough')),
      signal: giveUp.signal,
    })
    await expect(importing).rejects.toThrow('enough')
    expect(await isEmpty(target)).toBe(true)
  })

  test('is a consistent snapshot during concurrent writes', async () => {
    const [busy, target] = [await freshDatabase(), await freshDatabase()]
    await fill(busy)
    const before = await digestTables(busy.pool)
    let disturbed: Promise<unknown> | undefined
    const out = new PassThrough()
    const disturb = () => {
      disturbed ??= busy.pool.query('delete from webhook_header; delete from transfer')
    }
    const exporting = exportInstallation({ pool: busy.pool, out, onProgress: disturb })
    const [bytes] = await Promise.all([buffer(out), exporting])
    await disturbed
    await importInto(target, bytes)
    expect(await digestTables(target.pool)).toEqual(before)
  })
})

test('the estimate of rows follows a table that grew after its statistics', async () => {
  const database = await freshDatabase()
  const grow = (from: number, to: number) =>
    database.pool.query(
      `insert into method_usage select gen_random_uuid(), '2026-01-01', gen_random_uuid(), 'c', 'mainnet', 'eth_call', i, 0, 0
       from generate_series(${from}, ${to}) i`,
    )
  await grow(1, 100)
  await database.pool.query('analyze method_usage')
  await grow(101, 20_000)
  const out = new PassThrough()
  out.resume()
  const totals: (number | undefined)[] = []
  const onProgress = ({ totalRows }: Progress) => totals.push(totalRows)
  await exportInstallation({ pool: database.pool, out, onProgress })
  expect(totals[0]).toBeGreaterThan(15_000)
  expect(totals[0]).toBeLessThan(30_000)
})
