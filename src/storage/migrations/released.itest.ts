import { createHash } from 'node:crypto'
import { PassThrough, Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { describe, expect, test } from 'vitest'
import { isOnCitus } from '../../../test/helpers/citus.ts'
import { emptyDatabase, type FreshDatabase, freshDatabase } from '../../../test/helpers/database.ts'
import { silentLog } from '../../lib/log.ts'
import { exportInstallation } from '../archive/export.ts'
import { importInstallation } from '../archive/import.ts'
import { digestTables, fillTables } from '../archive/testing/test-rows.ts'
import { ensurePartitionsBetween } from '../pg/partitions.ts'
import { readMigrations } from './files.ts'
import { migrateDatabase } from './migrate.ts'
import { describeSchema } from './testing/catalogue.ts'

/**
 * Every release with the migrations that it added, as SHA-256 of the file. Migrations are append-only:
 * do not change an entry, add one for the new version.
 */
const releases: { version: string; files: Record<string, string> }[] = [
  {
    version: '0.1.0',
    files: {
      '0001-installation': 'edfde1c68b62319f471b10b70b1c1e06894a1166167eb7d7080c4d26ac7cd45d',
      '0002-access': '890868411e5fa95d43efc81b279fbeb1df81a509972c9c4766ee09b1c55c3b74',
      '0003-wallets': '127d7935b0a24f07f3d11664f97b0e15d358d0676ed64118726861c80291e096',
      '0004-balances': '5983308fd69b9ddaa36ecfdcd30bec2a5b094b0f45bee8046086449fb37183da',
      '0005-transfers': '16d361df629b80517cc2c18b522d57991c2013b6b9a6995082ac51e9426652ac',
      '0006-webhooks': '7679f40df52a5d6f41472e2626bd1904cff774a101bda492ced16eb37dd726c0',
      '0007-transactions': 'be342ce77c4a56729e2e5b540acea95b316f25250b156f298d2066bbcbfa70c3',
      '0008-tracking': 'c7b73baee7a4a549c3e3f7d30db57384c182f8607f7b0c2d6071767f9aa23e93',
      '0009-audit': 'e1d0ce45622a21beb7c205067ce1cdc38b266a97efd71c97693a7d948e532326',
    },
  },
]

const files = await readMigrations()
const log = silentLog
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')

/** The migrations that a version had, in order. */
const filesOf = (version: string) => {
  const until = releases.findIndex((release) => release.version === version)
  const names = releases.slice(0, until + 1).flatMap((release) => Object.keys(release.files))
  return files.filter(({ name }) => names.includes(name))
}

const rowsPerTable = 5

const installationOf = async (version: string): Promise<FreshDatabase> => {
  const database = await emptyDatabase()
  await migrateDatabase(database.db, { log, files: filesOf(version) })
  await ensurePartitionsBetween(database.db, new Date('2026-09-01'), new Date('2026-12-01'))
  await fillTables(database.pool, rowsPerTable)
  return database
}

const countsOf = async ({ pool }: FreshDatabase): Promise<Record<string, number>> => {
  const digests = Object.entries(await digestTables(pool))
  return Object.fromEntries(digests.map(([table, digest]) => [table, Number.parseInt(digest, 10)]))
}

/** Without partitions, which are made as time goes by, and without the record of migrations. */
const schemaOf = async ({ pool }: FreshDatabase): Promise<string[]> =>
  (await describeSchema(pool)).filter((line) => !/transfer_\d|schema_migration/.test(line))

test('no released migration was changed or removed', () => {
  const known = Object.fromEntries(files.map(({ name, sql }) => [name, sha256(sql)]))
  const released = Object.assign({}, ...releases.map((release) => release.files))
  expect(known).toMatchObject(released)
})

test('new migrations come after the released ones', () => {
  const released = releases.flatMap((release) => Object.keys(release.files))
  expect(files.slice(0, released.length).map(({ name }) => name)).toEqual(released)
})

// Citus needs another key of transfers.
describe.skipIf(isOnCitus).each(releases)('an installation of $version', ({ version }) => {
  test('is upgraded without losing a row, to the schema of a new installation', async () => {
    const old = await installationOf(version)
    const before = await countsOf(old)
    await migrateDatabase(old.db, { log })
    expect(await countsOf(old)).toMatchObject(before)
    expect(await schemaOf(old)).toEqual(await schemaOf(await freshDatabase()))
  })

  test('is imported from its archive', async () => {
    const [old, target] = [await installationOf(version), await emptyDatabase()]
    const out = new PassThrough()
    const [archive] = await Promise.all([buffer(out), exportInstallation({ pool: old.pool, out })])
    await importInstallation({ pool: target.pool, in: Readable.from([archive]), log })
    expect(await countsOf(target)).toMatchObject(await countsOf(old))
    expect(await schemaOf(target)).toEqual(await schemaOf(await freshDatabase()))
  })
})
