import { chmod, mkdtemp, readdir, realpath, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { systemClock } from '../../src/lib/clock.ts'
import { silentLog } from '../../src/lib/log.ts'
import { listBackups, takeBaseBackup } from '../../src/storage/embedded/base-backup.ts'
import { startEmbeddedPostgres } from '../../src/storage/embedded/embedded-postgres.ts'
import { restoreBackup } from '../../src/storage/embedded/restore.ts'
import { migrateDatabase } from '../../src/storage/migrations/migrate.ts'
import { type Database, openDatabase } from '../../src/storage/pg/database.ts'
import { findCursor } from '../../src/storage/tracking/blocks.ts'
import { acquireLease } from '../../src/storage/tracking/leases.ts'
import { createMonths } from '../../src/workers/janitor/months.ts'
import { runBackfill } from '../../src/workers/tracker/backfill.ts'
import { storeBeginning, storeBlocks } from '../../src/workers/tracker/store.ts'
import type { TrackerTools } from '../../src/workers/tracker/tools.ts'
import { createWalletBench } from '../helpers/wallets.ts'
import { runCommand } from './portolan.ts'

const folder = await realpath(await mkdtemp(join(tmpdir(), 'portolan-backup-')))
// As root the database runs as another user, who must come through.
await chmod(folder, 0o711)
afterAll(() =>
  process.env.KEEP ? undefined : rm(folder, { recursive: true, force: true, maxRetries: 5 }),
)
const dataDir = join(folder, 'data')
const backup = { directory: join(folder, 'backups'), archive_timeout_seconds: 60 }
const settings = { shared_buffers: '16MB' }
const never = new AbortController().signal
const log = silentLog

const withServer = async <result>(work: (opened: Database) => Promise<result>): Promise<result> => {
  const server = await startEmbeddedPostgres({ dataDir, log, settings, backup })
  const database = openDatabase({ connection: server.connection, log, max: 3 })
  try {
    return await work(database)
  } finally {
    await database.stop()
    await server.stop()
  }
}

const backUp = (connection: Parameters<typeof takeBaseBackup>[0]['connection'], now = new Date()) =>
  takeBaseBackup({
    ...{ connection, dataDir, directory: backup.directory, now, signal: never },
    ...{ schema_version: 'test', onProgress: () => {} },
  })

test('a restore brings back one moment, and a backfill finds what was missed after it', async () => {
  const server = await startEmbeddedPostgres({ dataDir, log, settings, backup })
  const first = openDatabase({ connection: server.connection, log, max: 3 })
  await migrateDatabase(first.db, { log })
  const bench = await createWalletBench(first.db, 'c')
  const { chain, network_id, account, address } = bench
  const lease = (await acquireLease(first.db, {
    ...{ name: 'backup', holder: '00000000-0000-4000-8000-000000000001', ttl_ms: 3_600_000 },
  }))!
  const toolsOn = (db: Database['db']): TrackerTools => ({
    ...{ db, clock: systemClock, network_id, chain, window: 64 },
    lease: { name: 'backup', epoch: lease.epoch },
  })
  const caller = await bench.createCaller()
  await caller.call('RegisterWallet', { name: 'w', confirmation: 1, address: address(1) })
  await storeBeginning(toolsOn(first.db), chain.canonical().at(-1)!)
  const track = async (db: Database['db']) => {
    const cursor = (await findCursor(db, network_id))!
    const position = { number: cursor.block_number, hash: cursor.block_hash }
    const event = (await chain.follow(position, never)[Symbol.asyncIterator]().next()).value
    await createMonths(db)(event.blocks.map(({ time }: { time: number }) => time))
    await storeBlocks(toolsOn(db), event.blocks)
  }
  const values = async (database: Database): Promise<string[]> =>
    (await database.pool.query('select value::text from transfer order by block_number')).rows.map(
      ({ value }) => value,
    )
  const pay = async (value: bigint) => {
    chain.mine([{ movements: [{ to: account(1), value }] }])
    await track(first.db)
  }

  await pay(1n)
  const manifest = await backUp(server.connection)
  expect(manifest).toMatchObject({ format: 1, schema_version: 'test' })
  await pay(2n)
  // Between two transactions, by the clock of the server.
  const { rows } = await first.pool.query('select clock_timestamp() as time')
  const at = new Date(rows[0].time.getTime() + 1)
  await first.pool.query('select pg_sleep(0.05)')
  await pay(3n)
  await pay(4n)
  await first.pool.query('delete from transfer')
  expect(await values(first)).toEqual([])
  await first.stop()
  await server.stop()

  const restored = await restoreBackup({ dataDir, backup, settings, at, log, signal: never })
  expect(restored.backup.name).toBe(manifest.name)
  expect(Date.parse(restored.last_transaction_time!)).toBeLessThanOrEqual(at.getTime())
  expect((await stat(restored.before!)).isDirectory()).toBe(true)

  await withServer(async (second) => {
    expect(await values(second)).toEqual(['1', '2'])
    const cursor = (await findCursor(second.db, network_id))!
    // What the tracker does after the start: it continues from the restored block.
    await track(second.db)
    expect(await values(second)).toEqual(['1', '2', '3', '4'])
    await second.pool.query(`delete from transfer where value = 3`)
    const range = { from: 1, signal: never, onProgress: () => {} }
    const tools = { db: second.db, clock: systemClock, network_id, chain }
    const outcome = await runBackfill({ ...tools, ...range })
    expect(await values(second)).toEqual(['1', '2', '3', '4'])
    expect(cursor.block_number).toBeLessThan(outcome.to)
    expect(outcome).toMatchObject({ transfers: 1, missing: [] })
  })
})

test('a time that the archive does not reach changes nothing', async () => {
  const at = new Date(Date.now() + 3_600_000)
  await expect(
    restoreBackup({ dataDir, backup, settings, at, log, signal: never }),
  ).rejects.toThrow('The archive ends before')
  await withServer(async ({ pool }) => {
    const { rows } = await pool.query('select count(*)::int4 as count from transfer')
    expect(rows).toEqual([{ count: 4 }])
  })
  await expect(
    restoreBackup({ dataDir, backup, settings, at: new Date(0), log, signal: never }),
  ).rejects.toThrow('No base backup is from before 1970')
})

test('the command makes, lists and deletes backups, and restores nothing without --yes', async () => {
  const run = (...args: string[]) => runCommand(args, { dataDir, cwd: folder })
  const made = await run('backup', 'backups', '--keep', '1')
  expect(made.code).toBe(0)
  expect(made.stdout).toContain('restorable_from')
  expect(made.stderr).toMatch(/Deleted 1 older backups and [1-9]\d* WAL segments\./)
  const [kept, ...others] = await listBackups(backup.directory)
  expect(others).toEqual([])
  expect((await run('backup', '--list', 'backups')).stdout).toContain(kept!.name)
  const files = await readdir(join(backup.directory, 'base', kept!.name, 'data'))
  expect(files).toContain('backup_label')
  expect(files).not.toContain('postmaster.pid')
  expect((await run('restore', 'backups')).stderr).toContain('Nothing was changed. Add --yes')
  expect((await run('restore', 'backups', '--at', 'yesterday')).code).toBe(2)
  const foreign = await runCommand(['backup', 'backups'], {
    ...{ dataDir, cwd: folder, env: { DATABASE_URL: 'postgres://db.invalid/portolan' } },
  })
  expect(foreign.stderr).toContain('Back it up with its own tools')
})
