import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { waitFor } from '../../../../test/helpers/wait-for.ts'
import { systemClock } from '../../../lib/clock.ts'
import { silentLog } from '../../../lib/log.ts'
import { type BatchManner, type Lie, type StubNode, startStub } from '../testing/stub-node.ts'
import { createPool, type PoolOptions } from './pool.ts'
import type { Pool, PoolOutcome } from './pool-types.ts'

let liar: StubNode
let honest: StubNode
const pools: Pool[] = []

beforeEach(async () => {
  ;[liar, honest] = await Promise.all([startStub('liar'), startStub('honest')])
})

afterEach(async () => {
  await Promise.all(pools.splice(0).map((pool) => pool.stop()))
  await Promise.all([liar.stop(), honest.stop()])
})

const open = async (
  urls: string[],
  options: Partial<PoolOptions> = {},
  /** What stops the pool; without it that is the end of the test, which must be the only one that runs. */
  stack?: AsyncDisposableStack,
): Promise<Pool> => {
  const pool = createPool({
    network: 'test',
    prefix: 'eth',
    upstreams: urls.map((url, priority) => ({ url, name: `node-${priority}`, priority })),
    clock: systemClock,
    log: silentLog,
    ...options,
  })
  if (stack) stack.defer(pool.stop)
  else pools.push(pool)
  await waitFor('every node is explored', () =>
    pool
      .status()
      .every(({ state, capabilities }) => state === 'healthy' && capabilities.length > 0),
  )
  return pool
}

const ask = (pool: Pool, params: unknown[] = [], timeoutMs = 3_000): Promise<PoolOutcome> =>
  pool.request({ method: 'eth_call', params: JSON.stringify(params), idempotent: true, timeoutMs })

const nameIn = (outcome: PoolOutcome): unknown =>
  'ok' in outcome && outcome.ok ? JSON.parse(outcome.result).name : outcome

const lies: Lie[] = [
  'garbage',
  'html 502',
  '429',
  '429 without a time',
  'cut body',
  'cut JSON',
  'damaged JSON',
  'not UTF-8',
  'wrong id',
  'null id',
  'no id',
  'id of a neighbour',
  'duplicate keys',
  'neither result nor error',
  'empty',
  'redirect',
  'compressed',
  '64 MiB',
  '64 MiB in pieces',
  'trickle',
  'silence',
  'closes at once',
  'closes after the headers',
  'rate limit error',
]

describe.each(['http', 'ws'] as const)('a node that lies over %s', (transport) => {
  const isPossible = (lie: Lie) =>
    transport === 'http' ||
    ![
      'html 502',
      '429',
      '429 without a time',
      'redirect',
      'compressed',
      'not UTF-8',
      'cut body',
      'trickle',
      '64 MiB in pieces',
      'closes after the headers',
      // Swapped answers of two calls in flight cannot be detected.
      'id of a neighbour',
    ].includes(lie)

  // Most lies show by a time limit only, so they wait together. Large replies would keep the others waiting.
  const isAlone = (lie: Lie) => /MiB/.test(lie)

  /** Asks a pool of two nodes of its own, of which the preferred one lies. */
  const expectHonest = async (lie: Lie) => {
    await using stack = new AsyncDisposableStack()
    const [liar, honest] = await Promise.all([startStub('liar'), startStub('honest')])
    stack.defer(() => Promise.all([liar.stop(), honest.stop()]).then(() => {}))
    const pool = await open([transport === 'http' ? liar.url : liar.wsUrl, honest.url], {}, stack)
    liar.lie = lie
    // To read and drop 64 MiB takes seconds on a busy machine.
    const timeoutMs = isAlone(lie) ? 30_000 : 3_000
    const outcomes = await Promise.all(
      Array.from({ length: 30 }, (_, index) => ask(pool, [index], timeoutMs)),
    )
    expect(outcomes.map(nameIn)).toEqual(outcomes.map(() => 'honest'))
    // Each call has the answer that belongs to it.
    expect(
      outcomes.map((one) => ('ok' in one && one.ok ? JSON.parse(one.result).params[0] : -1)),
    ).toEqual(outcomes.map((_, index) => index))
  }

  test.concurrent.each(lies.filter((lie) => isPossible(lie) && !isAlone(lie)))(
    '%s: the next one is asked',
    expectHonest,
  )
  test.each(lies.filter((lie) => isPossible(lie) && isAlone(lie)))(
    '%s: the next one is asked',
    expectHonest,
  )
})

describe('a node that is alone', () => {
  test.each<[Lie, PoolOutcome]>([
    ['garbage', { failure: 'NO_UPSTREAM' }],
    ['64 MiB', { failure: 'REPLY_TOO_LARGE' }],
    ['silence', { failure: 'TIMEOUT' }],
    ['trickle', { failure: 'TIMEOUT' }],
  ])('%s: the failure says what it was, in time', async (lie, expected) => {
    const pool = await open([liar.url])
    liar.lie = lie
    const startedAt = Date.now()
    expect(await ask(pool, [], 1_000)).toEqual(expected)
    expect(Date.now() - startedAt).toBeLessThan(10_000)
  })

  test('recovers from a rate limit by itself', async () => {
    const pool = await open([liar.url])
    liar.lie = '429'
    const outcome = ask(pool, [], 20_000)
    setTimeout(() => {
      liar.lie = undefined
    }, 300)
    expect(nameIn(await outcome)).toBe('liar')
  })

  test('an error that comes with a status of its own is an answer', async () => {
    const pool = await open([liar.url])
    liar.answer = () => undefined
    expect(await ask(pool)).toEqual({ failure: 'NO_UPSTREAM' })
  })
})

describe('batches', () => {
  const askMany = async (manner: BatchManner, count = 120) => {
    liar.batches = 'fine'
    const pool = await open([liar.url])
    liar.batches = manner
    liar.batchSizes = []
    const outcomes = await Promise.all(
      Array.from({ length: count }, (_, index) => ask(pool, [index])),
    )
    return { pool, outcomes }
  }
  const areRight = (outcomes: PoolOutcome[]) =>
    outcomes.every(
      (one, index) => 'ok' in one && one.ok && JSON.parse(one.result).params[0] === index,
    )

  test('join the calls of one turn, up to 100', async () => {
    const { outcomes } = await askMany('fine')
    expect(areRight(outcomes)).toBe(true)
    expect(liar.batchSizes.filter((size) => size > 3)).toEqual([100, 20])
  })

  test.each<BatchManner>(['reversed', 'refused', 'status 400', 'at most 10', 'as one object'])(
    '%s: every call has its own answer',
    async (manner) => {
      const { outcomes } = await askMany(manner)
      expect(outcomes.filter((one) => !('ok' in one && one.ok))).toEqual([])
      expect(areRight(outcomes)).toBe(true)
    },
  )

  test.each<BatchManner>(['lacks one', 'one twice'])(
    '%s: no call gets the answer of another',
    async (manner) => {
      const { outcomes } = await askMany(manner, 40)
      expect(areRight(outcomes)).toBe(true)
    },
  )

  test('are not used with a node that refuses the probe', async () => {
    liar.batches = 'refused'
    const pool = await open([liar.url])
    liar.batchSizes = []
    const outcomes = await Promise.all(Array.from({ length: 20 }, (_, index) => ask(pool, [index])))
    expect(areRight(outcomes)).toBe(true)
    expect(liar.batchSizes).toEqual([])
  })

  test('slow methods go alone', async () => {
    const pool = await open([liar.url])
    liar.batchSizes = []
    const method = 'debug_traceTransaction'
    await Promise.all(
      Array.from({ length: 5 }, () => pool.request({ method, params: '[]', idempotent: true })),
    )
    expect(liar.batchSizes.filter((size) => size > 3)).toEqual([])
  })
})

describe('the chain id', () => {
  test('of the first node in the configuration is pinned, and others are never asked', async () => {
    liar.chainId = 5
    honest.delayMs = 150
    const pool = createPool({
      network: 'test',
      prefix: 'eth',
      upstreams: [{ url: honest.url }, { url: liar.url, name: 'stranger' }],
      clock: systemClock,
      log: silentLog,
    })
    pools.push(pool)
    await waitFor('both are judged', () => pool.status()[1]?.state === 'wrong_chain')
    expect(pool.chainId()).toBe(1)
    const outcomes = await Promise.all(Array.from({ length: 20 }, () => ask(pool)))
    expect(new Set(outcomes.map(nameIn))).toEqual(new Set(['honest']))
    expect(pool.status()[1]).toMatchObject({ state: 'wrong_chain', chain_id: 5 })
  })

  test('that changes under us takes the node out, and back', async () => {
    const pool = await open([liar.url, honest.url])
    liar.chainId = 9
    await waitFor('it is noticed', () => pool.status()[0]?.state === 'wrong_chain')
    expect(nameIn(await ask(pool))).toBe('honest')
    liar.chainId = 1
    await waitFor('it is back', () => pool.status()[0]?.state === 'healthy')
    expect(nameIn(await ask(pool))).toBe('liar')
  })

  test('is checked before a node that was unreachable is used again', async () => {
    const pool = await open([liar.url], { limits: { patienceMs: 5_000 } })
    const { port } = new URL(liar.url)
    await liar.stop()
    const waiting = ask(pool, [], 5_000)
    const other = await startStub('other', { port: Number(port) })
    other.chainId = 7
    await waitFor('it is seen', () => pool.status()[0]?.state === 'wrong_chain')
    other.chainId = 1
    expect(nameIn(await waiting)).toBe('other')
    await other.stop()
  })
})

test('nothing that may hold a key leaves the pool', async () => {
  const observed: string[] = []
  const written: unknown[] = []
  const note = (fields: object, message: string) => void written.push(fields, message)
  const url = new URL(liar.url)
  url.username = 'user'
  url.password = 'pass-secret'
  url.pathname = '/v3/key-secret'
  url.search = '?token=query-secret'
  const pool = createPool({
    network: 'test',
    prefix: 'eth',
    upstreams: [{ url: url.href }],
    clock: systemClock,
    log: { debug: note, info: note, warn: note, error: note },
    observe: (...args) => void observed.push(JSON.stringify(args)),
  })
  pools.push(pool)
  await waitFor('it is healthy', () => pool.status()[0]?.state === 'healthy')
  await ask(pool)
  liar.chainId = 3
  await waitFor('it is wrong', () => pool.status()[0]?.state === 'wrong_chain')
  await liar.stop()
  await waitFor('it is gone', () => pool.status()[0]?.reason !== '' && written.length > 4)
  const answered = JSON.stringify([pool.status(), written, observed])
  expect(answered).not.toMatch(/secret|user/)
  expect(pool.status()[0]?.name).toBe(url.host)
})

test('a node gets no more than its rate', async () => {
  const pool = await open([], {
    upstreams: [{ url: liar.url, requests_per_second: 50 }],
  })
  await new Promise((resolve) => setTimeout(resolve, 1_000))
  liar.methods = []
  const startedAt = Date.now()
  const outcomes = await Promise.all(Array.from({ length: 120 }, () => ask(pool, [], 30_000)))
  expect(outcomes.map(nameIn).every((name) => name === 'liar')).toBe(true)
  const seconds = (Date.now() - startedAt) / 1000
  const calls = liar.methods.filter((method) => method === 'eth_call').length
  expect(calls).toBe(120)
  expect(calls).toBeLessThanOrEqual(50 + 50 * (seconds + 0.1))
})
