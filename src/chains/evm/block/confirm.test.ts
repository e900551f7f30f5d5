import { expect, it } from 'vitest'
import { bytesOf } from '../codec/raw.ts'
import { createRpc } from '../pool/rpc.ts'
import { createFakeClock } from '../testing/fake-clock.ts'
import { addressOf, stubChain } from '../testing/stub-chain.ts'
import { createStubPool } from '../testing/stub-pool.ts'
import { createConfirm } from './confirm.ts'
import type { InternalMove, PaidFee } from './node-claims.ts'
import type { InternalTransfer } from './traces.ts'

const blocks = stubChain([[], [], []])
const account = addressOf(7)
const signal = AbortSignal.timeout(20_000)

const received = (value: bigint): InternalMove => ({
  ...{ transaction: 0, from: bytesOf(addressOf(1)), to: bytesOf(account), value },
})
const sent = (value: bigint): InternalMove => ({
  ...{ transaction: 0, from: bytesOf(account), to: bytesOf(addressOf(1)), value },
})

type Node = { before?: bigint; after?: bigint }

const open = (nodes: Node[], traced?: InternalTransfer[][]) => {
  const asked: string[] = []
  const traces: (readonly string[])[] = []
  const pool = createStubPool(
    nodes.map(({ before, after }, index) => ({
      blocks,
      answer: (method, params) => {
        if (method !== 'eth_getBalance') return undefined
        asked.push(`node ${index}`)
        const { blockHash } = params[1] as { blockHash: string }
        const balance = blockHash === blocks[2]!.block.hash ? after : before
        return balance === undefined ? undefined : `0x${balance.toString(16)}`
      },
    })),
  )
  const clock = createFakeClock()
  const confirm = createConfirm({
    rpc: createRpc({ pool, prefix: 'eth' }),
    pool,
    clock: { ...clock, sleep: async () => {} },
    traceElsewhere: {
      isPossible: () => traced !== undefined,
      trace: async (_, avoid) => {
        traces.push(avoid)
        return avoid.includes('node 0') ? traced : undefined
      },
    },
    readFee: async (_, { avoid }) => (avoid.includes('node 0') ? 3n : undefined),
  })
  const question = {
    account: bytesOf(account),
    change: 5n as bigint | undefined,
    moves: [received(5n)] as InternalMove[],
    paid: [] as PaidFee[],
    block: { number: 2, hash: bytesOf(blocks[2]!.block.hash) },
    parent_hash: bytesOf(blocks[1]!.block.hash),
    tracers: ['node 0'],
    hashes: () => [blocks[2]!.block.hash],
  }
  return { confirm, question, asked, traces }
}

it('the difference of the balance at another node confirms a trace', async () => {
  const { confirm, question, asked } = open([{}, { before: 10n, after: 15n }])
  expect(await confirm(question, signal)).toBe(true)
  expect(new Set(asked)).toEqual(new Set(['node 1']))
})

it('another difference does not', async () => {
  const { confirm, question } = open([
    { before: 10n, after: 15n },
    { before: 10n, after: 10n },
  ])
  expect(await confirm(question, signal)).toBe(false)
})

it('a second trace confirms where the states are gone', async () => {
  const transfer = { from: addressOf(1), to: account, value: 5n }
  const { confirm, question } = open([{}, {}], [[transfer]])
  expect(await confirm(question, signal)).toBe(true)
})

it('a second trace that says otherwise does not', async () => {
  const transfer = { from: addressOf(1), to: account, value: 4n }
  const { confirm, question } = open([{}, {}], [[transfer]])
  expect(await confirm(question, signal)).toBe(false)
})

it('an account whose change is not known is confirmed by a second trace only', async () => {
  const transfer = { from: addressOf(1), to: account, value: 5n }
  const { confirm, question, asked } = open([{}, { before: 10n, after: 15n }], [[transfer]])
  expect(await confirm({ ...question, change: undefined }, signal)).toBe(true)
  expect(asked).toEqual([])
})

it('a node that is alone confirms by its own state', async () => {
  const { confirm, question } = open([{ before: 10n, after: 15n }])
  expect(await confirm(question, signal)).toBe(true)
})

it('after a change that nothing confirms, the next blocks do not wait', async () => {
  const { confirm, question, asked } = open([{}, { before: 10n, after: 10n }])
  expect(await confirm(question, signal)).toBe(false)
  const rounds = asked.length
  expect(await confirm(question, signal)).toBe(false)
  expect(asked.length - rounds).toBe(2)
  expect(rounds).toBeGreaterThan(2)
})

it('moves in both directions are not confirmed by the state, which shows their difference only', async () => {
  const moves = [received(1_000n), sent(1_000n)]
  const none = open([{}, { before: 10n, after: 10n }])
  expect(await none.confirm({ ...none.question, change: 0n, moves }, signal)).toBe(false)
  expect(none.asked).toEqual([])
  // Nothing to wait for: the next account is asked about as patiently as before.
  expect(await none.confirm(none.question, signal)).toBe(false)
  expect(none.asked.length).toBeGreaterThan(2)
  const itself = { ...received(9n), from: bytesOf(account) }
  expect(await none.confirm({ ...none.question, change: 0n, moves: [itself] }, signal)).toBe(false)
})

it('a second trace confirms each move and not their sum', async () => {
  const moves = [received(1_000n), sent(1_000n)]
  const [from, to] = [addressOf(1), account.toUpperCase().replace('0X', '0x')]
  const both = [
    { from: to, to: from, value: 1_000n },
    { from, to, value: 1_000n },
  ]
  const same = open([{}, {}], [both])
  expect(await same.confirm({ ...same.question, change: 0n, moves }, signal)).toBe(true)
  const honest = open([{}, {}], [[]])
  expect(await honest.confirm({ ...honest.question, change: 0n, moves }, signal)).toBe(false)
})

it('where every node has traced a part, the word of each is confirmed by the others', async () => {
  const nodes = [
    { before: 10n, after: 15n },
    { before: 10n, after: 10n },
  ]
  for (const liar of [0, 1]) {
    const { confirm, question } = open(liar === 0 ? nodes : nodes.toReversed())
    expect(await confirm({ ...question, tracers: ['node 0', 'node 1'] }, signal)).toBe(false)
  }
  const { confirm, question, asked } = open([nodes[0]!, nodes[0]!])
  expect(await confirm({ ...question, tracers: ['node 0', 'node 1'] }, signal)).toBe(true)
  expect(new Set(asked)).toEqual(new Set(['node 0', 'node 1']))
})

it('a false fee does not hide a false deposit: it is read again from another node', async () => {
  const { confirm, question } = open([{}, { before: 10n, after: 7n }])
  // The sender paid 3. The tracer gives a fee of 1,003 and a deposit of 1,000 for the same difference.
  const forged = { change: -3n, moves: [received(1_000n)], paid: [{ transaction: 0, fee: 1_003n }] }
  expect(await confirm({ ...question, ...forged }, signal)).toBe(false)
})

it('a fee that another node confirms belongs to the difference', async () => {
  const { confirm, question } = open([{}, { before: 10n, after: 12n }])
  const honest = { change: 2n, moves: [received(5n)], paid: [{ transaction: 0, fee: 3n }] }
  expect(await confirm({ ...question, ...honest }, signal)).toBe(true)
})

it('the accounts of a block share one second trace', async () => {
  const moves = [received(1_000n), sent(1_000n)]
  const [from, to] = [addressOf(1), account]
  const both = [
    { from, to, value: 1_000n },
    { from: to, to: from, value: 1_000n },
  ]
  const { confirm, question, traces } = open([{}, {}], [both])
  const ofBlock = AbortSignal.timeout(20_000)
  const asked = Array.from({ length: 20 }, () => confirm({ ...question, moves }, ofBlock))
  expect(await Promise.all(asked)).toEqual(asked.map(() => true))
  expect(traces).toEqual([['node 0']])
})
