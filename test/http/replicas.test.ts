import { afterAll, describe, expect, test } from 'vitest'
import { systemClock } from '../../src/lib/clock.ts'
import { silentLog } from '../../src/lib/log.ts'
import { migrateDatabase } from '../../src/storage/migrations/migrate.ts'
import { openDatabase } from '../../src/storage/pg/database.ts'
import { openReplicas } from '../../src/storage/pg/replicas.ts'
import { startTestApp, type TestApp } from '../helpers/app.ts'
import { startTestServer, systemBinaries } from '../helpers/postgres.ts'
import { type Replica, startReplica } from '../helpers/replica.ts'
import { createScriptedChains } from '../helpers/scripted-chains.ts'
import { waitFor } from '../helpers/wait-for.ts'

// The package of npm has no pg_basebackup.
const binaries = await systemBinaries()

type World = {
  first: TestApp
  second: TestApp
  replica: Replica
  replicas: ReturnType<typeof openReplicas>
}

const begin = async (): Promise<World | undefined> => {
  if (binaries === undefined) return undefined
  const server = await startTestServer(binaries)
  afterAll(server.stop)
  const { connection } = server
  const opened = openDatabase({ connection, log: silentLog })
  afterAll(opened.stop)
  await waitFor('the primary answers', () =>
    opened.pool.query('select 1').then(
      () => true,
      () => false,
    ),
  )
  await migrateDatabase(opened.db, { log: silentLog })
  const replica = await startReplica(connection, binaries)
  afterAll(replica.stop)
  const chains = createScriptedChains()
  const { host, user, database } = connection
  const config = {
    database: {
      url: `postgres:///${database}?host=${encodeURIComponent(host)}&user=${user}`,
      replica_urls: [replica.url],
    },
  }
  const first = await startTestApp({ chains, database: { ...opened, connection }, config })
  const second = await startTestApp({ chains, beside: first, config })
  // Of its own, so that the test sees its state.
  const replicas = openReplicas({
    ...{
      primary: opened.db,
      clock: systemClock,
      log: silentLog,
      max: 2,
      statementTimeoutMs: 5_000,
    },
    connections: [{ connectionString: replica.url }],
  })
  afterAll(replicas.stop)
  return { first, second, replica, replicas }
}
const world = await begin()

describe.skipIf(!world)('read replicas', () => {
  const { first, second, replica, replicas } = world ?? ({} as World)
  const stateOf = () => replicas.status()[0]!.state
  const isFresh = () => waitFor('the replica is fresh', () => stateOf() === 'fresh')
  /** Whether a list came from the replica, which cannot be seen in an answer. */
  const readsOnReplica = async (organization_id: string) => {
    const before = replicas.status()[0]!.read_count
    await replicas.read(organization_id, first.database.db, async () => undefined)
    return replicas.status()[0]!.read_count > before
  }
  const namesOf = async (app: TestApp, pair: Parameters<TestApp['call']>[0]) => {
    const { status, json } = await app.call(pair, 'c/ListWallets', { page_size: 100 })
    expect(status).toBe(200)
    return json.wallets.map(({ name }: { name: string }) => name)
  }

  test('what was just written is listed by every process, while others read from the replica', async () => {
    await isFresh()
    const { member } = await first.createTenant()
    for (let turn = 0; turn < 20; turn++) {
      const name = `wallet ${turn}`
      const [writer, reader] = turn % 2 ? [first, second] : [second, first]
      await writer.call(member, 'c/RegisterWallet', { name, confirmation: 1 })
      expect(await namesOf(reader, member)).toContain(name)
    }
    const { organization_id } = await first.createTenant()
    await waitFor('a quiet organization reads from the replica', () =>
      readsOnReplica(organization_id),
    )
  })

  test('a replica that lags is not asked', async () => {
    await isFresh()
    const { member } = await first.createTenant()
    await replica.pause()
    await first.call(member, 'c/RegisterWallet', { name: 'while it lags', confirmation: 1 })
    expect(await namesOf(second, member)).toEqual(['while it lags'])
    await waitFor('it is seen to lag', () => stateOf() === 'lagging')
    expect(await namesOf(first, member)).toEqual(['while it lags'])
    await replica.resume()
    await isFresh()
    expect(await namesOf(second, member)).toEqual(['while it lags'])
  })

  test('a replica that dies costs no request, and is used again when it is back', async () => {
    await isFresh()
    const { member, organization_id } = await first.createTenant()
    const stopping = replica.kill()
    for (let turn = 0; turn < 20; turn++) expect(await namesOf(first, member)).toEqual([])
    await stopping
    await waitFor('it is seen to be away', () => stateOf() === 'unreachable')
    await replica.start()
    await isFresh()
    await waitFor('it is read from', () => readsOnReplica(organization_id))
  })

  test('a replica that was promoted is never read from again', async () => {
    await isFresh()
    const { member, organization_id } = await first.createTenant()
    await replica.promote()
    await waitFor('it is seen to be promoted', () => stateOf() === 'promoted')
    await first.call(member, 'c/RegisterWallet', { name: 'on the primary', confirmation: 1 })
    expect(await namesOf(second, member)).toEqual(['on the primary'])
    expect(await readsOnReplica(organization_id)).toBe(false)
  })
})
