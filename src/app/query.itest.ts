import { expect, onTestFinished, test } from 'vitest'
import { freshDatabase } from '../../test/helpers/database.ts'
import { createJumpingClock } from '../chains/evm/testing/jumping-clock.ts'
import { startStub } from '../chains/evm/testing/stub-node.ts'
import { systemIds } from '../lib/ids.ts'
import { silentLog } from '../lib/log.ts'
import { loadConfig } from './config/load.ts'
import { openNetworks } from './networks.ts'
import { openQueries } from './query.ts'

const { db } = await freshDatabase()

const setup = async (record_pending: boolean) => {
  const stub = await startStub('a')
  onTestFinished(stub.stop)
  const clock = createJumpingClock()
  const config = loadConfig({
    env: {},
    cwd: '/',
    overrides: {
      chains: {
        base: {
          variants: ['C', 'Q'],
          record_pending,
          networks: { mainnet: { upstreams: [{ url: stub.url }] } },
        },
      },
    },
  })
  const networks = openNetworks(config, {
    ...{ env: {}, log: silentLog, clock, ids: systemIds, spill: () => {} },
  })
  onTestFinished(networks.stop)
  const queries = await openQueries(config, { db, clock, log: silentLog, networks })
  onTestFinished(queries.stop)
  return { clock, queries, network: networks.byPath.get('/base/mainnet')! }
}

test('a network that was opened for a query sleeps when there are no more, and is opened again', async () => {
  const { clock, queries, network } = await setup(false)
  expect([queries.find('base'), network.isAwake()]).toEqual([undefined, false])
  const source = await queries.open('base')
  expect(network.isAwake()).toBe(true)

  await clock.jump(9)
  expect(queries.find('base')).toBe(source)
  await clock.jump(9)
  expect(queries.find('base')).toBe(source)

  // Ten minutes until it is closed, and ten for the nodes.
  await clock.jump(24)
  expect([queries.find('base'), queries.status(), network.isAwake()]).toEqual([
    undefined,
    {},
    false,
  ])
  expect(await queries.open('base')).toBeDefined()
  expect(network.isAwake()).toBe(true)
})

test('a network whose pending transactions are recorded stays awake', async () => {
  const { clock, queries, network } = await setup(true)
  await clock.jump(30)
  expect([queries.find('base') !== undefined, network.isAwake()]).toEqual([true, true])
})
