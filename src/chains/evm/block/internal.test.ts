import { expect, it } from 'vitest'
import { createByteSet } from '../../../lib/bytes.ts'
import {
  BlockMissingError,
  type ChainBlock,
  ChainUnavailableError,
  UnreadableError,
} from '../../chain.ts'
import { evmFamily } from '../family.ts'
import type { Capability, PoolOutcome } from '../pool/pool-types.ts'
import { createRpc } from '../pool/rpc.ts'
import { createFakeClock } from '../testing/fake-clock.ts'
import { addressOf, stubBlock } from '../testing/stub-chain.ts'
import { createStubPool, type StubNode } from '../testing/stub-pool.ts'
import { createFetchBlock } from './fetch.ts'
import { type Tracing, usualTracingPatience } from './internal.ts'

const { signal } = new AbortController()
const explored = async () => {}
const accounts = [1, 2, 3].map((number) => Buffer.from(addressOf(number).slice(2), 'hex'))
const tracked = {
  accounts: createByteSet(accounts),
  contracts: createByteSet([]),
  tokenAccount: () => [],
}

const usualCapabilities: readonly Capability[] = ['block_receipts', 'debug_trace']

const makeSetup = (before: readonly StubNode[] = [], capabilities = usualCapabilities) => {
  const first = stubBlock()
  const second = stubBlock([{ from: addressOf(1), to: addressOf(2), value: 5n }], { parent: first })
  const inner = { type: 'CALL', from: addressOf(2), to: addressOf(3), value: '0x4' }
  const root = { type: 'CALL', from: addressOf(1), to: addressOf(2), value: '0x5', calls: [inner] }
  const node: StubNode = {
    blocks: [first, second],
    answer: (method) => (method === 'debug_traceBlockByHash' ? [{ result: root }] : undefined),
  }
  const pool = createStubPool([...before, node], capabilities)
  const clock = createFakeClock()
  const fetchBlock = createFetchBlock({
    rpc: createRpc({ pool, prefix: 'eth' }),
    pool,
    native: evmFamily.native,
    rules: { proof: 'root', unproven_types: new Set() },
    verifySenders: false,
    clock,
    explored,
  })
  const fetch = (tracing: Partial<Tracing> = {}) =>
    fetchBlock(1, signal, { isExpected: false, mayRetry: true, ...tracing })
  const valuesOf = (block: ChainBlock) => block.decode(tracked).movements.map(({ value }) => value)
  const values = async () => valuesOf(await fetch())
  const lacks = async () => (await fetch()).lacks
  /** Lets time go by while something is waited for. */
  const inTime = async <value>(work: Promise<value>): Promise<value> => {
    let isOver = false
    const ended = work.finally(() => {
      isOver = true
    })
    ended.catch(() => {})
    for (let turn = 0; !isOver && turn < 500; turn++) await clock.advance(100)
    return await ended
  }
  /** Lets the methods that match be answered in another way. */
  const answer = (pattern: RegExp, outcome: PoolOutcome) => {
    const { request } = pool
    pool.request = async (asked) => (pattern.test(asked.method) ? outcome : await request(asked))
    return () => {
      pool.request = request
    }
  }
  return { pool, clock, fetch, values, lacks, inTime, valuesOf, answer, node, root }
}

const errorOf = (code: number, message: string): PoolOutcome => ({
  ok: false,
  error: JSON.stringify({ code, message }),
})

it('waits for a tracing node that is unreachable for a moment, so that nothing is missed', async () => {
  const { pool, values } = makeSetup()
  expect(await values()).toEqual([5n, 4n])
  pool.setAway(true)
  await expect(values()).rejects.toThrow('no node can trace block 1 now')
  pool.setAway(false)
  expect(await values()).toEqual([5n, 4n])
})

it('a node that traces and does not come back is not waited for any longer', async () => {
  const { pool, clock, values, lacks } = makeSetup()
  pool.setAway(true)
  await expect(values()).rejects.toThrow('no node can trace')
  await clock.advance(usualTracingPatience.awayMs)
  expect(await values()).toEqual([5n])
  expect(await lacks()).toBe('no node that traces was there')
  pool.setAway(false)
  expect(await values()).toEqual([5n, 4n])
  expect(await lacks()).toBe(undefined)
  pool.setAway(true)
  await expect(values()).rejects.toThrow('no node can trace')
})

it('a network that was traced before is incomplete without a node that traces, one that never was is not', async () => {
  const { pool, clock, fetch } = makeSetup()
  pool.setAway(true)
  pool.has = () => false
  expect(await fetch()).toMatchObject({ isTraced: false })
  expect((await fetch()).lacks).toBe(undefined)
  await expect(fetch({ isExpected: true })).rejects.toThrow('no node can trace block 1 now')
  await clock.advance(usualTracingPatience.awayMs)
  expect((await fetch({ isExpected: true })).lacks).toBe('no node that traces was there')
  pool.setAway(false)
  expect(await fetch({ isExpected: true })).toMatchObject({ isTraced: true })
})

it('a trace that a node cannot give now is asked for again before it counts as missing', async () => {
  const { answer, fetch, inTime, valuesOf, pool, clock } = makeSetup()
  pool.setHead(1_000)
  for (const message of ['historical data is temporarily unavailable', 'block not found']) {
    const heal = answer(/^debug/, errorOf(-32000, message))
    const asked = fetch()
    asked.catch(() => {})
    await clock.advance(400)
    heal()
    expect(valuesOf(await inTime(asked))).toEqual([5n, 4n])
  }
})

it('what every node has pruned is incomplete, whatever the client', async () => {
  for (const [code, message] of [
    [-32000, 'missing trie node 5f3 (path )'],
    [-32000, 'required historical state unavailable (reexec=128)'],
    [-32000, 'old data not available due to pruning'],
    [-32002, 'No state available for block 1 (0x12)'],
    [4444, 'Pruned history unavailable'],
    [-32000, 'state at block #1 is pruned'],
    [-32000, 'World state unavailable'],
  ] as const) {
    const { answer, fetch, inTime } = makeSetup()
    answer(/^debug/, errorOf(code, message))
    expect((await inTime(fetch())).lacks).toBe('no node has the state to trace it any more')
  }
})

it('a block whose trace is too large is traced by its transactions, and lacks only those that are', async () => {
  const { answer, fetch, inTime, valuesOf, node, root } = makeSetup()
  answer(/^debug_traceBlock/, { failure: 'REPLY_TOO_LARGE' })
  const block = node.answer
  node.answer = (method, params) =>
    method === 'debug_traceTransaction' ? root : block?.(method, params)
  const whole = await fetch()
  expect(valuesOf(whole)).toEqual([5n, 4n])
  expect(whole.lacks).toBe(undefined)
  answer(/^debug_traceTransaction/, { failure: 'REPLY_TOO_LARGE' })
  const partial = await inTime(fetch())
  expect(valuesOf(partial)).toEqual([5n])
  expect(partial.lacks).toMatch(/^1 of 1 transactions cannot be traced: .*REPLY_TOO_LARGE/)
})

it.each([
  ['does not explain', () => undefined],
  ['says something else a moment later', () => 'pruned'],
])(
  'a node that has pruned does not keep a block from being traced singly where the error of the other %s',
  async (_, later) => {
    const pruned = { code: 4444, message: 'Pruned history unavailable' }
    const { blocks } = makeSetup().node
    const { node, root, fetch, inTime, valuesOf } = makeSetup([
      { blocks, refuse: (method) => (method.startsWith('debug') ? pruned : undefined) },
    ])
    let count = 0
    node.refuse = (method) => {
      if (method !== 'debug_traceBlockByHash') return undefined
      return count++ > 0 && later() ? pruned : { code: -32000, message: 'internal error' }
    }
    node.answer = (method) => (method === 'debug_traceTransaction' ? root : undefined)
    const block = await inTime(fetch())
    expect(valuesOf(block)).toEqual([5n, 4n])
    expect(block.lacks).toBe(undefined)
  },
)

it('a block that one node has pruned and another one cannot give is not missing', async () => {
  const pruned = { code: 4444, message: 'Pruned history unavailable' }
  for (const method of ['eth_getBlockByNumber', 'eth_getBlockReceipts']) {
    const { blocks } = makeSetup().node
    const before = { blocks, refuse: (asked: string) => (asked === method ? pruned : undefined) }
    const { node, fetch } = makeSetup([before])
    node.refuse = (asked) =>
      asked === method ? { code: -32000, message: 'internal error' } : undefined
    await expect(fetch()).rejects.toThrow(UnreadableError)
    node.refuse = before.refuse
    await expect(fetch()).rejects.toThrow(BlockMissingError)
  }
})

it.each([
  ['eth_getBlockByNumber', ['block_receipts']],
  ['eth_getBlockReceipts', ['block_receipts']],
  ['eth_getTransactionReceipt', []],
] as const)(
  'what one node has pruned and another one answers uselessly is waited for: %s',
  async (method, capabilities) => {
    const pruned = { code: 4444, message: 'Pruned history unavailable' }
    const { blocks } = makeSetup().node
    const before = { blocks, refuse: (asked: string) => (asked === method ? pruned : undefined) }
    const { node, fetch, inTime } = makeSetup([before], [...capabilities, 'debug_trace'])
    node.lie = (asked) => (asked === method ? {} : undefined)
    const error: unknown = await inTime(fetch()).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(ChainUnavailableError)
    expect(error).not.toBeInstanceOf(UnreadableError)
    expect(error).not.toBeInstanceOf(BlockMissingError)
    // Both have answered: that is no silence, and it ends sooner.
    node.lie = (asked) => (asked === method ? null : undefined)
    if (method !== 'eth_getTransactionReceipt')
      await expect(inTime(fetch())).rejects.toThrow(UnreadableError)
  },
)

it('traces of single transactions do not count if the block left the chain meanwhile', async () => {
  const { answer, fetch, inTime, valuesOf, node, root } = makeSetup()
  answer(/^debug_traceBlock/, { failure: 'REPLY_TOO_LARGE' })
  const [first] = node.blocks
  const payment = { from: addressOf(1), to: addressOf(2), value: 5n }
  const other = stubBlock([payment, payment], { parent: first! })
  // The other branch has the transaction too, and calls something else there.
  node.answer = (method) => {
    if (method !== 'debug_traceTransaction') return undefined
    node.blocks = [first!, other]
    return root
  }
  const block = await inTime(fetch())
  expect(valuesOf(block)).toEqual([5n])
  expect(block.lacks).toBe('it was not on the chain while its transactions were traced')
})

it('a block is not traced only if the gas of each transaction leaves nothing to run code with', async () => {
  for (const [gas, input, isAsked] of [
    ['0x5208', '0x', false],
    ['0x5209', '0x', true],
    ['0x5208', '0x00', true],
  ] as const) {
    const first = stubBlock()
    const plain = { to: addressOf(2), input, transaction: { gas } }
    const second = stubBlock([plain], { parent: first })
    const pool = createStubPool([{ blocks: [first, second] }], ['block_receipts', 'debug_trace'])
    const rpc = createRpc({ pool, prefix: 'eth' })
    const { native } = evmFamily
    const clock = createFakeClock()
    const rules = { proof: 'root' as const, unproven_types: new Set<number>() }
    const tools = { rpc, pool, native, rules, verifySenders: false, clock, explored }
    const fetchBlock = createFetchBlock(tools)
    await fetchBlock(1, signal)
    expect(pool.methods.includes('debug_traceBlockByHash')).toBe(isAsked)
  }
})
