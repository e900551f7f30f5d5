import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { Head, PoolRequest } from '../../chains/evm/pool/pool-types.ts'
import { createNetwork } from '../network.ts'
import type { Answer } from '../rpc/answer.ts'
import { createFakePool } from '../testing/fake-pool.ts'
import { createStillCanonical } from '../testing/still-canonical.ts'

// A chain that grows, forks and rolls back at random while one key reads it. Every answer names the
// blocks that it was made from, so that one from a dropped block cannot hide.

type Step =
  | { kind: 'mine'; count: number; all: boolean }
  | { kind: 'reorg'; depth: number; length: number; all: boolean }
  | {
      kind: 'read'
      what: 'latest' | 'number' | 'block' | 'hash' | 'receipt' | 'logs'
      back: number
    }
  | { kind: 'fail'; calls: number; error: string }
  | { kind: 'settle' }

const nodeErrors = [
  '{"code":-32000,"message":"header not found"}',
  '{"code":-32000,"message":"unknown block"}',
  '{"code":-32000,"message":"missing block data"}',
  '{"code":-32602,"message":"block range extends beyond current head block"}',
  '{"code":-32005,"message":"query returned more than 10000 results"}',
  '{"code":-32603,"message":"internal error"}',
]

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('mine' as const),
      count: fc.integer({ min: 1, max: 4 }),
      all: fc.boolean(),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('reorg' as const),
      depth: fc.integer({ min: 1, max: 12 }),
      length: fc.integer({ min: 1, max: 13 }),
      all: fc.boolean(),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('read' as const),
      what: fc.constantFrom(
        'latest' as const,
        'number' as const,
        'block' as const,
        'hash' as const,
        'receipt' as const,
        'logs' as const,
      ),
      back: fc.integer({ min: 0, max: 5 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('fail' as const),
      calls: fc.integer({ min: 1, max: 3 }),
      error: fc.constantFrom(...nodeErrors),
    }),
  },
  { weight: 2, arbitrary: fc.constant({ kind: 'settle' as const }) },
)

const finalityDepth = 8
const session = { credential_id: 'k', organization_id: 'o', role: 'ROLE_MEMBER' as const }
const quantity = (value: number) => `0x${value.toString(16)}`

const createWorld = () => {
  const pool = createFakePool()
  let made = 0
  const newHash = () => `0x${(++made).toString(16).padStart(64, '0')}`
  let chain: string[] = Array.from({ length: 20 }, newHash)
  const branches = [new Set(chain)]
  const headAt = (number: number): Head => ({
    number,
    hash: chain[number]!,
    parent_hash: chain[number - 1] ?? `0x${'0'.repeat(64)}`,
    timestamp: number,
  })
  const blockText = (number: number) => {
    const { hash, parent_hash } = headAt(number)
    return `{"number":"${quantity(number)}","hash":"${hash}","parentHash":"${parent_hash}"}`
  }
  const numberOf = (text: unknown) => Number.parseInt(String(text), 16)
  const resultOf = ({ method, params }: PoolRequest): string => {
    const [first, second] = JSON.parse(params)
    if (method === 'eth_getBalance') {
      const number = second === 'latest' ? chain.length - 1 : numberOf(second)
      return chain[number] ? `"state of ${chain[number]}"` : 'null'
    }
    if (method === 'eth_getBlockByNumber') {
      const number = first === 'latest' ? chain.length - 1 : numberOf(first)
      return chain[number] ? blockText(number) : 'null'
    }
    if (method === 'eth_getBlockByHash') {
      const number = chain.indexOf(first)
      return number < 0 ? 'null' : blockText(number)
    }
    if (method === 'eth_getTransactionReceipt') {
      const number = numberOf(first)
      const hash = chain[number]
      return hash
        ? `{"blockNumber":"${quantity(number)}","blockHash":"${hash}","contractAddress":null}`
        : 'null'
    }
    const from = numberOf(first.fromBlock)
    const to = first.toBlock === 'latest' ? chain.length - 1 : numberOf(first.toBlock)
    return `[${chain
      .slice(from, to + 1)
      .map((hash) => `"log of ${hash}"`)
      .join(',')}]`
  }
  let failing: { calls: number; error: string } = { calls: 0, error: '' }
  pool.answer = (request) =>
    failing.calls-- > 0
      ? { ok: false, error: failing.error }
      : { ok: true, result: resultOf(request) }
  pool.best = headAt(chain.length - 1)
  const network = createNetwork({
    chain: 'c',
    network: 'm',
    prefix: 'eth',
    pool,
    canonical: createStillCanonical(pool, { now: () => 0, finalityDepth }),
    allowedMethods: [],
    cacheBytes: 1_000_000,
    maxLogRange: 1000,
    timeoutMs: 1000,
    now: () => 0,
    spill: () => {},
  })
  const announce = (from: number, all: boolean) => {
    for (let number = all ? from : chain.length - 1; number < chain.length; number++)
      pool.show(headAt(number))
  }
  return {
    network,
    chain: () => chain,
    mine: (count: number, all: boolean) => {
      const from = chain.length
      chain = [...chain, ...Array.from({ length: count }, newHash)]
      branches.push(new Set(chain))
      announce(from, all)
    },
    reorg: (depth: number, length: number, all: boolean) => {
      const from = Math.max(1, chain.length - depth)
      // At least as long as what it replaces: a shorter one is no chain that nodes would follow.
      const count = Math.max(length, chain.length - from)
      chain = [...chain.slice(0, from), ...Array.from({ length: count }, newHash)]
      branches.push(new Set(chain))
      announce(from, all)
    },
    hashes: () => branches.at(-1)!,
    /** Every branch from the one of that place on. */
    branches: (from: number) => branches.slice(from),
    place: () => branches.length - 1,
    fail: (calls: number, error: string) => {
      failing = { calls, error }
    },
  }
}

type World = ReturnType<typeof createWorld>

const callOf = (world: World, { what, back }: Extract<Step, { kind: 'read' }>) => {
  const chain = world.chain()
  const number = Math.max(1, chain.length - 1 - back)
  const address = `0x${'a'.repeat(40)}`
  const calls = {
    latest: ['eth_getBalance', [address, 'latest']],
    number: ['eth_getBalance', [address, quantity(number)]],
    block: ['eth_getBlockByNumber', [quantity(number), false]],
    hash: ['eth_getBlockByHash', [chain[number], false]],
    receipt: ['eth_getTransactionReceipt', [`0x${number.toString(16).padStart(64, '0')}`]],
    logs: ['eth_getLogs', [{ fromBlock: quantity(number), toBlock: 'latest' }]],
  } as const
  const [method, args] = calls[what]
  return { id: '1', method, params: JSON.stringify(args), args, refusal: undefined }
}

const settle = async () => {
  for (let turn = 0; turn < 60; turn++) await Promise.resolve()
}

it('never returns data of a block that left the chain, and never an error as data', async () => {
  let hits = 0
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 60 }), async (steps) => {
      const world = createWorld()
      const key = world.network.sessionOf(session)
      const wrong: string[] = []
      const read = (one: Extract<Step, { kind: 'read' }>) => {
        // A node may answer from any branch between the question and the answer.
        const place = world.place()
        world.network.call(callOf(world, one), key, (answer: Answer) => {
          const now = world.hashes()
          if (answer.hit) hits++
          // Every block has a log: an empty list can only be an error that was taken for an answer.
          if (one.what === 'logs' && answer.ok && answer.text === '[]') wrong.push('no logs')
          for (const hash of answer.text.match(/0x[0-9a-f]{64}/g) ?? []) {
            if (/^0x0+$/.test(hash)) continue
            if (!world.branches(place).some((branch) => branch.has(hash)))
              wrong.push(`${one.what} ${answer.hit} ${hash}`)
          }
          if (answer.hit && answer.hash && !now.has(answer.hash)) wrong.push(`block ${answer.hash}`)
        })
      }
      for (const one of steps) {
        if (one.kind === 'mine') world.mine(one.count, one.all)
        else if (one.kind === 'reorg') world.reorg(one.depth, one.length, one.all)
        else if (one.kind === 'fail') world.fail(one.calls, one.error)
        else if (one.kind === 'read') {
          read(one)
          for (let turn = 0; turn < 4; turn++) await Promise.resolve()
          read(one)
        } else await settle()
      }
      await settle()
      world.network.stop()
      expect(wrong).toEqual([])
    }),
    { numRuns: 400 },
  )
  // Without hits the property would say nothing.
  expect(hits).toBeGreaterThan(500)
}, 60_000)

it('continues caching after every reorganization', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
      const world = createWorld()
      const key = world.network.sessionOf(session)
      for (const one of steps) {
        if (one.kind === 'mine') world.mine(one.count, one.all)
        else if (one.kind === 'reorg') world.reorg(one.depth, one.length, one.all)
        else await settle()
      }
      await settle()
      while (world.network.view.isLinking()) await Promise.resolve()
      const ask = () =>
        new Promise<Answer>((resolve) => {
          const call = callOf(world, { kind: 'read', what: 'latest', back: 0 })
          world.network.call(call, key, resolve)
        })
      const first = await ask()
      const second = await ask()
      world.network.stop()
      const head = world.chain().at(-1)
      expect(first.text).toBe(`"state of ${head}"`)
      expect(second).toMatchObject({ text: first.text, hit: true, hash: head })
    }),
    { numRuns: 100 },
  )
}, 60_000)
