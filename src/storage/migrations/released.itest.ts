import { createHash } from 'node:crypto'
import { PassThrough, Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { describe, expect, test } from 'vitest'
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
      '0001-installation': '19e78565dca486cc335112cdd23cd6fc8fd30571381878f04d3c77dd02279e53',
      '0002-access': '890868411e5fa95d43efc81b279fbeb1df81a509972c9c4766ee09b1c55c3b74',
      '0003-wallets': '694643273f7028c22fde25527c1f038c8020eafb584d85c5abf02999edbf3219',
      '0004-balances': '8421e2ef6fba2d4a08eb5a092121d107f1990b39f9148cf007aaba9369ef672e',
      '0005-transfers': 'd4de96dfc4173d13240c99335a72e503094bf118eca2036759949ba1d84bc13d',
      '0006-webhooks': '3277e02c39f1739efe796d203188a287a65835648e7cce76956e1b7d1facdfdb',
      '0007-transactions': 'f3b2a9d4819c51cc29ed9d57069fcab9409acf1445e7e8e25b512f38c26ed683',
      '0008-tracking': '2bac4cf0884dc7836f2c5f08ca132f747935a5b8d14472be5d897cf125e1d846',
      '0009-audit': 'ee557e94d928533d523ef19a1946ea35e8808decca4eefdca309bba5f3423392',
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

describe.each(releases)('an installation of $version', ({ version }) => {
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
