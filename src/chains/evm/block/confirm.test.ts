import { expect, it } from 'vitest'
import { bytesOf } from '../codec/raw.ts'
import { createRpc } from '../pool/rpc.ts'
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

const open = (
  nodes: Node[],
  traced?: InternalTransfer[][],
  hang?: (signal: AbortSignal) => Promise<void>,
) => {
  const asked: string[] = []
  const traces: { avoid: readonly string[]; timeoutMs: number | undefined }[] = []
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
  let now = 1_000_000
  const pass = (ms: number) => {
    now += ms
  }
  const confirmAll = createConfirm({
    rpc: createRpc({ pool, prefix: 'eth' }),
    pool,
    clock: { sleep: async (ms) => pass(ms), now: () => now },
    traceElsewhere: {
      isPossible: () => traced !== undefined,
      trace: async (_, { avoid, timeoutMs, signal }) => {
        traces.push({ avoid, timeoutMs })
        if (hang) await hang(signal)
        return avoid.includes('node 0') ? traced : undefined
      },
    },
    ...(hang && { limitMs: 100 }),
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
    untraced: 0,
  }
  const confirm = async (one: typeof question, signal: AbortSignal) =>
    (await confirmAll([one], signal))[0]
  return { confirm, confirmAll, question, asked, traces, pass, now: () => now }
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

/** A forwarder sends on what it receives. */
const onward = [received(1_000n), sent(1_000n)]
const [one, other] = [addressOf(1), account]
const bothWays = [
  { from: one, to: other, value: 1_000n },
  { from: other, to: one, value: 1_000n },
]
const strange = (number: number) => {
  const address = bytesOf(addressOf(100 + number))
  return { account: address, moves: [{ ...received(5n), to: address }] }
}

it('the accounts of a block share one second trace', async () => {
  const { confirmAll, question, traces } = open([{}, {}], [bothWays])
  const asked = Array.from({ length: 20 }, () => ({ ...question, moves: onward }))
  expect(await confirmAll(asked, signal)).toEqual(asked.map(() => true))
  expect(traces).toEqual([{ avoid: ['node 0'], timeoutMs: undefined }])
})

it('an account that nothing confirms makes no deposit of another one unverified, and does not delay its own twice', async () => {
  const { confirm, question, now, traces } = open([{}, { before: 10n, after: 10n }], [bothWays])
  const stranger = { ...question, ...strange(0) }
  expect(await confirm(stranger, signal)).toBe(false)
  const first = now()
  expect(await confirm(stranger, signal)).toBe(false)
  expect(now()).toBe(first)
  expect(traces.at(-1)).toEqual({ avoid: ['node 0'], timeoutMs: 2_000 })
  const forwarder = { ...question, change: 0n, moves: onward }
  expect(await confirm(forwarder, signal)).toBe(true)
  expect(traces.at(-1)).toEqual({ avoid: ['node 0'], timeoutMs: undefined })
  // Not the forwarder's: its second trace says something else now and then, and is waited for.
  expect(await confirm({ ...forwarder, moves: [received(1n), sent(1n)] }, signal)).toBe(false)
  expect(now()).toBeGreaterThan(first)
})

it('many accounts that nothing confirms delay blocks for a bounded part of the time, and deposits of others are confirmed all the while', async () => {
  const { confirm, question, now, pass } = open([{}, { before: 10n, after: 10n }], [bothWays])
  const begun = now()
  const forwarder = { ...question, change: 0n, moves: onward }
  for (let number = 0; number < 40; number++) {
    expect(await confirm({ ...question, ...strange(number) }, signal)).toBe(false)
    expect(await confirm(forwarder, signal)).toBe(true)
  }
  expect(now() - begun).toBeLessThan(15_000)
  // It does not stay so.
  pass(60_000)
  const later = now()
  expect(await confirm({ ...question, ...strange(41) }, signal)).toBe(false)
  expect(now()).toBeGreaterThan(later)
})

it('however many accounts of a block nothing confirms, the others of it are confirmed, and waited for together', async () => {
  const { confirmAll, question, now } = open([{}, { before: 10n, after: 10n }], [bothWays])
  const begun = now()
  const strangers = Array.from({ length: 100 }, (_, number) => ({
    ...question,
    ...strange(number),
  }))
  const forwarder = { ...question, change: 0n, moves: onward }
  const unmoved = { ...question, change: 0n }
  expect((await confirmAll([...strangers, forwarder, unmoved], signal)).slice(99)).toEqual([
    false,
    true,
    true,
  ])
  expect(now() - begun).toBe(4_300)
})

it('a second trace that takes too long takes no confirmation from the accounts that the state shows', async () => {
  const hang = (signal: AbortSignal) =>
    new Promise<void>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
  const { confirmAll, question, traces } = open([{}, { before: 10n, after: 15n }], [bothWays], hang)
  const forwarder = { ...question, ...strange(1), change: 0n, moves: onward }
  expect(await confirmAll([forwarder, question], signal)).toEqual([false, true])
  expect(await confirmAll([forwarder], signal)).toEqual([false])
  // It is known to take long.
  expect(traces.map(({ timeoutMs }) => timeoutMs)).toEqual([undefined, 2_000])
})
