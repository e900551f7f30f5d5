import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import { copyInitializedDataDir } from '../../../test/helpers/initialized-data-dir.ts'
import { silentLog } from '../../lib/log.ts'
import { connectEmbedded } from './connect-embedded.ts'
import { startEmbeddedPostgres } from './embedded-postgres.ts'
import type { EmbeddedConnection } from './layout.ts'
import { layoutOf } from './layout.ts'
import { findPostmaster } from './postmaster.ts'

const options = async () => {
  const folder = await mkdtemp(join(tmpdir(), 'portolan-connect-'))
  await chmod(folder, 0o711)
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return { dataDir: join(folder, 'data'), log: silentLog, settings: { fsync: false } }
}

/** With a database that was initialized before. */
const optionsOfLater = async () => {
  const where = await options()
  await copyInitializedDataDir(where.dataDir)
  return where
}

const answers = async (connection: EmbeddedConnection): Promise<boolean> => {
  const client = new pg.Client(connection)
  client.on('error', () => {})
  try {
    await client.connect()
    return (await client.query('select 1')).rowCount === 1
  } catch {
    return false
  } finally {
    await client.end().catch(() => {})
  }
}

const runs = async (dataDir: string) => (await findPostmaster(layoutOf(dataDir).data)) !== undefined

test('starts a server where none runs, and takes it down again', async () => {
  const where = await options()
  const visit = await connectEmbedded(where)
  expect(visit.started).toBe(true)
  expect(await answers(visit.connection)).toBe(true)
  await visit.stop()
  expect(await runs(where.dataDir)).toBe(false)
})

test('uses the server of a running service and leaves it alone', async () => {
  const where = await optionsOfLater()
  const service = await startEmbeddedPostgres(where)
  const visit = await connectEmbedded(where)
  expect(visit.started).toBe(false)
  expect(await answers(visit.connection)).toBe(true)
  await visit.stop()
  expect(await answers(service.connection)).toBe(true)
  await service.stop()
})

test('waits for a service that is starting', async () => {
  const where = await optionsOfLater()
  const [service, visit] = await Promise.all([
    startEmbeddedPostgres(where),
    new Promise((resolve) => setTimeout(resolve, 20)).then(() => connectEmbedded(where)),
  ])
  expect(await answers(visit.connection)).toBe(true)
  await visit.stop()
  await service.stop()
})

test('one command waits for the other', async () => {
  const where = await optionsOfLater()
  const first = await connectEmbedded(where)
  const second = connectEmbedded(where)
  const early = await Promise.race([
    second.then(() => 'entered'),
    new Promise((resolve) => setTimeout(() => resolve('waiting'), 300)),
  ])
  expect(early).toBe('waiting')
  await first.stop()
  const visit = await second
  expect(await answers(visit.connection)).toBe(true)
  await visit.stop()
  expect(await runs(where.dataDir)).toBe(false)
})
