import { expect, onTestFinished, test } from 'vitest'
import { freshDatabase } from '../../test/helpers/database.ts'
import { silentLog } from '../lib/log.ts'
import { openQueries } from './query.ts'
import { openStubNetwork } from './testing/stub-network.ts'

const { db } = await freshDatabase()

const setup = async (record_pending: boolean) => {
  const opened = await openStubNetwork({ variants: ['C', 'Q'], record_pending })
  const { clock, config, networks, network } = opened
  const queries = await openQueries(config, { db, clock, log: silentLog, networks })
  onTestFinished(queries.stop)
  return { clock, queries, network }
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
