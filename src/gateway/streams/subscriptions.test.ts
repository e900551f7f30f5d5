import { setImmediate as turn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { systemIds } from '../../lib/ids.ts'
import { compileLogQuery } from '../rpc/topics.ts'
import { createLogIndex } from './log-index.ts'
import {
  createSubscriptions,
  type LogListener,
  type Subscriber,
  sendLogs,
} from './subscriptions.ts'

const address = `0x${'1'.repeat(40)}`
const hash = `0x${'a'.repeat(64)}`
const block = { number: 5, hash, order: 2, header: '{"number":"0x5"}' } as never
const logs = [1, 2, 3].map((value) => ({ address, topics: [], lead: `{"value":${value}` }))

/** Subscriptions of a clock that runs for a tenth of a millisecond with each frame. */
const createBench = () => {
  let order = 1
  let time = 0
  const now = () => time
  const index = createLogIndex<LogListener>()
  const subscriptions = createSubscriptions({
    feed: () => ({ order: () => order, need: () => () => {} }) as never,
    ...{ index, ids: systemIds, now },
    pending: { need: () => () => {}, begun: () => true },
    syncing: {} as never,
    encode: (text) => Buffer.from(text),
  })
  const connect = () => {
    const got: unknown[] = []
    const push = (frame: Buffer) => {
      time += 0.1
      got.push(JSON.parse(frame.toString()).params.result)
    }
    const subscriber: Subscriber = { push, close() {} }
    return { subscriber, got }
  }
  const begin = () => {
    order = 2
  }
  return { index, subscriptions, connect, begin, now }
}

const asked = { method: 'eth_subscription', organization_id: 'o' }

test('a header reaches thousands of connections in turns, and none that comes meanwhile', async () => {
  const { subscriptions, connect, begin } = createBench()
  const all = Array.from({ length: 1_000 }, connect)
  const topic = { name: 'newHeads' } as const
  const taken = all.map(({ subscriber }, at) =>
    subscriptions.add(subscriber, topic, { ...asked, key: `${at % 2}` }),
  )
  const reached = () => all.filter(({ got }) => got.length > 0).length
  begin()
  const sent = subscriptions.header(block)
  expect(reached()).toBeLessThan(60)
  const late = connect()
  subscriptions.add(late.subscriber, topic, { ...asked, key: '0' })
  taken.at(-1)?.cancel()
  for (let before = reached(); before < 999; before = reached()) {
    await turn()
    expect(reached() - before).toBeLessThan(60)
  }
  await sent
  expect(all.map(({ got }) => got.length)).toEqual([...Array(999).fill(1), 0])
  expect(late.got).toEqual([])
})

test('the logs of a block reach thousands of subscriptions in turns, each in its order', async () => {
  const { index, subscriptions, connect, begin, now } = createBench()
  const all = Array.from({ length: 300 }, connect)
  for (const [at, { subscriber }] of all.entries()) {
    const query = compileLogQuery(at % 3 === 0 ? {} : { address })
    subscriptions.add(subscriber, { name: 'logs', query }, { ...asked, key: `${at % 100}` })
  }
  begin()
  const sent = sendLogs({ index, block, logs, removed: false, now })
  const count = () => all.reduce((sum, { got }) => sum + got.length, 0)
  expect(count()).toBeLessThan(60)
  for (let before = count(); before < 900; before = count()) {
    await turn()
    expect(count() - before).toBeLessThan(60)
  }
  await sent
  const expected = [1, 2, 3].map((value) => ({ value, removed: false }))
  for (const { got } of all) expect(got).toEqual(expected)
})

test('logs that wait for ranges to enter are sent to all once these are there', async () => {
  const { index } = createBench()
  const got: string[] = []
  const listen = (name: string, fromBlock: string) =>
    index.add({
      query: compileLogQuery({ address, fromBlock }),
      notify: (text) => void got.push(`${name} ${text}`),
    })
  listen('early', '0x1')
  index.reach({ number: 1, hash })
  listen('later', '0x3e8')
  const one = { ...(block as object), number: 1_000 } as never
  const sent = sendLogs({ index, block: one, logs: logs.slice(0, 2), removed: true })
  expect(got).toEqual([])
  await sent
  expect(got).toEqual([
    ...['early {"value":1,"removed":true}', 'later {"value":1,"removed":true}'],
    ...['early {"value":2,"removed":true}', 'later {"value":2,"removed":true}'],
  ])
})

test('pending transactions reach thousands of connections in turns and in their order', async () => {
  const { subscriptions, connect } = createBench()
  const all = Array.from({ length: 300 }, connect)
  const topic = { name: 'newPendingTransactions' } as const
  for (const [at, { subscriber }] of all.entries())
    subscriptions.add(subscriber, topic, { ...asked, key: `${at % 2}` })
  const count = () => all.reduce((sum, { got }) => sum + got.length, 0)
  const hashes = [1, 2, 3].map((value) => `0x${value}`)
  for (const hash of hashes) subscriptions.pending(hash)
  expect(count()).toBeLessThan(60)
  for (let before = count(); before < 900; before = count()) {
    await turn()
    expect(count() - before).toBeLessThan(60)
  }
  for (const { got } of all) expect(got).toEqual(hashes)
  for (let left = 10; left > 0; left--) subscriptions.pending('0x4')
  while (count() < 900 + 3_000) await turn()
  subscriptions.pending('0x5')
  while (count() < 900 + 3_300) await turn()
})

test('pending transactions that one answer of a node lists are sent in turns to few connections, too', async () => {
  const { subscriptions, connect } = createBench()
  const { subscriber, got } = connect()
  subscriptions.add(subscriber, { name: 'newPendingTransactions' }, { ...asked, key: 'k' })
  const hashes = Array.from({ length: 1_000 }, (_, at) => `0x${at}`)
  for (const hash of hashes) subscriptions.pending(hash)
  expect(got).toEqual(['0x0'])
  for (let before = 1; before < 1_000; before = got.length) {
    await turn()
    expect(got.length - before).toBeLessThan(60)
  }
  expect(got).toEqual(hashes)
})

test('connections that ask for more pending transactions than can be sent are closed', async () => {
  const { subscriptions, connect } = createBench()
  const closed: number[] = []
  const all = Array.from({ length: 100 }, () => {
    const { subscriber, got } = connect()
    const close = (code: number) => closed.push(code)
    return {
      got,
      ...subscriptions.add(
        { ...subscriber, close },
        { name: 'newPendingTransactions' },
        { ...asked, key: 'k' },
      ),
    }
  })
  for (let count = 0; count < 10_100; count++) subscriptions.pending('0x1')
  expect(closed).toEqual(Array(100).fill(1013))
  for (const { cancel } of all) cancel()
  await turn()
  const { subscriber, got } = connect()
  subscriptions.add(subscriber, { name: 'newPendingTransactions' }, { ...asked, key: 'k' })
  subscriptions.pending('0x2')
  while (got.length === 0) await turn()
  expect(got).toEqual(['0x2'])
})
