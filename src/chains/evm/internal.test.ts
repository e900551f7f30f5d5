import { expect, it } from 'vitest'
import { createByteSet } from '../../lib/bytes.ts'
import { createFakeClock } from '../upstream/fake-clock.ts'
import { evmFamily } from './family.ts'
import { createFetchBlock } from './fetch.ts'
import { tracingPatienceMs } from './internal.ts'
import { createRpc } from './rpc.ts'
import { addressOf, stubBlock } from './stub-chain.ts'
import { createStubPool, type StubNode } from './stub-pool.ts'

const { signal } = new AbortController()
const accounts = [1, 2, 3].map((number) => Buffer.from(addressOf(number).slice(2), 'hex'))
const tracked = {
  accounts: createByteSet(accounts),
  contracts: createByteSet([]),
  tokenAccount: () => [],
}

const makeScene = () => {
  const first = stubBlock()
  const second = stubBlock([{ from: addressOf(1), to: addressOf(2), value: 5n }], { parent: first })
  const inner = { type: 'CALL', from: addressOf(2), to: addressOf(3), value: '0x4' }
  const root = { type: 'CALL', from: addressOf(1), to: addressOf(2), value: '0x5', calls: [inner] }
  const node: StubNode = {
    blocks: [first, second],
    answer: (method) => (method === 'debug_traceBlockByHash' ? [{ result: root }] : undefined),
  }
  const pool = createStubPool([node], ['block_receipts', 'debug_trace'])
  const clock = createFakeClock()
  const fetchBlock = createFetchBlock({
    rpc: createRpc({ pool, prefix: 'eth' }),
    pool,
    native: evmFamily.native,
    rules: { proof: 'root', unproven_types: new Set() },
    verifySenders: false,
    clock,
    explored: async () => {},
  })
  const values = async () =>
    (await fetchBlock(1, signal)).decode(tracked).movements.map(({ value }) => value)
  const lacks = async () => (await fetchBlock(1, signal)).lacks
  return { pool, clock, values, lacks }
}

it('a node that traces and is away for a moment is waited for, so that nothing is missed', async () => {
  const { pool, values } = makeScene()
  expect(await values()).toEqual([5n, 4n])
  pool.setAway(true)
  await expect(values()).rejects.toThrow('no node can trace block 1 now')
  pool.setAway(false)
  expect(await values()).toEqual([5n, 4n])
})

it('a node that traces and does not come back is not waited for any longer', async () => {
  const { pool, clock, values, lacks } = makeScene()
  pool.setAway(true)
  await expect(values()).rejects.toThrow('no node can trace')
  await clock.advance(tracingPatienceMs)
  expect(await values()).toEqual([5n])
  expect(await lacks()).toBe('the node that traces was away')
  pool.setAway(false)
  expect(await values()).toEqual([5n, 4n])
  expect(await lacks()).toBe(undefined)
  pool.setAway(true)
  await expect(values()).rejects.toThrow('no node can trace')
})

it('a recent block that a node cannot find is asked for again: its state cannot be gone', async () => {
  const { pool, values, lacks } = makeScene()
  const { request } = pool
  pool.request = async (asked) =>
    asked.method === 'debug_traceBlockByHash'
      ? { ok: false, error: '{"code":-32000,"message":"block not found"}' }
      : await request(asked)
  await expect(values()).rejects.toThrow('no node can trace block 1 now')
  pool.request = request
  pool.setHead(1_000)
  pool.request = async (asked) =>
    asked.method === 'debug_traceBlockByHash'
      ? { ok: false, error: '{"code":-32000,"message":"missing trie node"}' }
      : await request(asked)
  expect(await values()).toEqual([5n])
  expect(await lacks()).toBe('no node has the state to trace it any more')
})
