import fc from 'fast-check'
import { expect, it } from 'vitest'
import { createByteSet } from '../../../lib/bytes.ts'
import { bytesOf, type RawReceipt } from '../codec/raw.ts'
import { evmFamily } from '../family.ts'
import { createRpc } from '../pool/rpc.ts'
import { createFakeClock } from '../testing/fake-clock.ts'
import {
  addressOf,
  type StubBlock,
  type StubTransaction,
  stubChain,
} from '../testing/stub-chain.ts'
import { createStubPool, type StubNode } from '../testing/stub-pool.ts'
import { stateSyncHash } from './coin-logs.ts'
import { createFetchBlock } from './fetch.ts'

// The first node is preferred and lies in everything that no root commits to. The second one is honest.

const { signal } = new AbortController()
const [victim, contract] = [addressOf(7), addressOf(9)]
const ether = 10n ** 18n
const hexOf = (value: bigint) => `0x${value.toString(16)}`
const refused = { code: -32000, message: 'tracing failed' }

type Moved = { from: string; to: string; value: bigint }
type Lies = {
  /** What it says that moved inside of the only transaction. */
  moved: Moved[]
  /** What it says that the victim has at the block. */
  balance?: bigint
  price?: string
  /** Whether whole blocks can be traced. */
  isWhole?: boolean
}

const frameOf = (moved: Moved[]) => ({
  ...{ type: 'CALL', from: addressOf(1), to: contract, value: '0x0' },
  calls: moved.map(({ from, to, value }) => ({ type: 'CALL', from, to, value: hexOf(value) })),
})

/** Adds what Polygon has at the end of a block, in no root. */
const addStateSync = ({ block, receipts }: StubBlock): void => {
  const hash = stateSyncHash(block)
  const [from, to] = [addressOf(0), addressOf(0)]
  block.transactions.push({ hash, type: '0x0', from, to, value: '0x0', input: '0x', nonce: '0x0' })
  receipts.push({ ...receipts[0]!, transactionHash: hash, gasUsed: '0x0', logs: [] })
}

/** What is stored of a block in which the victim received what `truth` says, and nothing else. */
const read = async (
  lies: Lies,
  {
    truth = [],
    transaction = { from: addressOf(1) },
    honestBalances = [0n, 0n],
    isSynced = false,
  }: {
    truth?: Moved[]
    transaction?: StubTransaction
    honestBalances?: [bigint, bigint]
    /** Whether a state sync ends the block, which no node traces. */
    isSynced?: boolean
  } = {},
) => {
  const call = { to: contract, input: '0x12345678', ...transaction }
  const blocks = stubChain([[], [call], []])
  const [parent, block] = blocks as [(typeof blocks)[0], (typeof blocks)[0]]
  if (isSynced) addStateSync(block)
  const nodeOf = (moved: Moved[], [before, after]: [bigint, bigint]): StubNode => ({
    blocks,
    refuse: (method) =>
      method === 'debug_traceBlockByHash' && !lies.isWhole ? refused : undefined,
    answer: (method, params) => {
      if (method === 'debug_traceBlockByHash') return [{ result: frameOf(moved) }]
      if (method === 'debug_traceTransaction') return frameOf(moved)
      if (method === 'eth_getTransactionByHash')
        return { ...block.block.transactions[0], blockHash: block.block.hash }
      if (method !== 'eth_getBalance') return undefined
      const { blockHash } = params[1] as { blockHash: string }
      if (blockHash === parent.block.hash) return hexOf(before)
      return blockHash === block.block.hash ? hexOf(after) : undefined
    },
  })
  const liar = nodeOf(lies.moved, [honestBalances[0], lies.balance ?? honestBalances[1]])
  liar.lie = (method, result) => {
    if (lies.price === undefined || !/Receipts?$/.test(method)) return undefined
    return [result].flat().map((one) => ({ ...(one as RawReceipt), effectiveGasPrice: lies.price }))
  }
  const pool = createStubPool(
    [liar, nodeOf(truth, honestBalances)],
    ['block_receipts', 'debug_trace'],
  )
  const fetchBlock = createFetchBlock({
    rpc: createRpc({ pool, prefix: 'eth' }),
    pool,
    native: evmFamily.native,
    rules: { proof: 'root', unproven_types: new Set(isSynced ? [0x7f] : []) },
    verifySenders: false,
    clock: { ...createFakeClock(), sleep: async () => {} },
    explored: async () => {},
  })
  const fetched = await fetchBlock(1, signal, { isExpected: true, mayRetry: true })
  const tracked = {
    accounts: createByteSet([bytesOf(victim)]),
    contracts: createByteSet([]),
    tokenAccount: () => [],
  }
  await fetched.check!(tracked, signal)
  return fetched.decode(tracked).movements.filter(({ value }) => value > 0n)
}

const decode = async (...args: Parameters<typeof read>) =>
  (await read(...args)).map(({ value, detail }) => [value, detail?.verified ?? true])

const deposit = { from: contract, to: victim, value: ether }
const withdrawal = { from: victim, to: contract, value: ether }

it('what a node says in traces of single transactions is not confirmed by its own state', async () => {
  expect(await decode({ moved: [deposit], balance: ether })).toEqual([[ether, false]])
  const real = { truth: [deposit], honestBalances: [0n, ether] as [bigint, bigint] }
  expect(await decode({ moved: [deposit] }, real)).toEqual([[ether, true]])
})

it.each([true, false])(
  'a false deposit beside a false withdrawal is not confirmed by their sum, where the block is traced as a whole: %s',
  async (isWhole) => {
    const stored = await decode({ moved: [deposit, withdrawal], isWhole })
    expect(stored).toEqual([
      [ether, false],
      [ether, false],
    ])
  },
)

it.each([false, true])(
  'moves in both directions are confirmed by the trace of another node, where a state sync follows: %s',
  async (isSynced) => {
    const moved = [deposit, withdrawal]
    expect(await decode({ moved, isWhole: true }, { truth: moved, isSynced })).toEqual([
      [ether, true],
      [ether, true],
    ])
  },
)

it('a false fee of the node that traces does not confirm a false deposit', async () => {
  // 30,000 gas at a price of 2; the node says 1 ether more, which the deposit seems to bring back.
  const price = hexOf(2n + ether / 30_000n)
  const value = (ether / 30_000n) * 30_000n
  const before = 5n * ether
  const forged = await decode(
    { moved: [{ ...deposit, value }], price, isWhole: true },
    { transaction: { from: victim }, honestBalances: [before, before - 60_000n] },
  )
  expect(forged).toEqual([[value, false]])
})

it('a false price of zero confirms neither a withdrawal in place of the fee nor a deposit without it', async () => {
  const before = 5n * ether
  const lie = { price: '0x0', isWhole: true }
  const fee = 60_000n
  const instead = await decode(
    { moved: [{ ...withdrawal, value: fee }], ...lie },
    { transaction: { from: victim }, honestBalances: [before, before - fee] },
  )
  expect(instead).toEqual([[fee, false]])
  const without = await decode(
    { moved: [{ ...deposit, value: ether - fee }], ...lie },
    {
      transaction: { from: victim },
      truth: [deposit],
      honestBalances: [before, before - fee + ether],
    },
  )
  expect(without).toEqual([[ether - fee, false]])
})

it('a deposit into an account that paid for the transaction is confirmed with its fee', async () => {
  const before = 5n * ether
  const stored = await decode(
    { moved: [deposit], isWhole: true },
    {
      transaction: { from: victim },
      honestBalances: [before, before - 60_000n + ether],
      truth: [],
    },
  )
  expect(stored).toEqual([[ether, true]])
})

const moved = fc.record({
  from: fc.constantFrom(victim, contract, addressOf(5)),
  to: fc.constantFrom(victim, contract, addressOf(5)),
  // Units in which a false price of gas can hide them.
  value: fc.bigInt({ min: 1n, max: 4n }).map((units) => units * 30_000n),
})
const netOf = (moves: readonly Moved[]): bigint =>
  moves.reduce(
    (net, { from, to, value }) =>
      net + (to === victim ? value : 0n) - (from === victim ? value : 0n),
    0n,
  )
const textsOf = (moves: readonly Moved[]): string[] =>
  moves
    .filter(({ from, to }) => from === victim || to === victim)
    .map(({ from, to, value }) => `${from} ${to} ${value}`)
    .toSorted()

it('whatever a node makes up, what counts as verified explains the balance, and in both directions it is the truth', async () => {
  const counts = { verified: 0, refused: 0 }
  const before = 10n ** 9n
  const some = fc.array(moved, { maxLength: 3 })
  const plan = fc.record({ truth: some, lie: some, isWhole: fc.boolean(), isSender: fc.boolean() })
  const check = fc.asyncProperty(plan, fc.boolean(), async (made, isHonest) => {
    const { truth, isWhole, isSender } = made
    const lie = isHonest ? truth : made.lie
    const fee = isSender ? 60_000n : 0n
    // It gives the balance, and where it can the price of gas, that fit what it made up.
    const units = 2n + (netOf(lie) - netOf(truth)) / 30_000n
    const price = units >= 0n ? units : 2n
    const stored = await read(
      { moved: lie, balance: before - fee + netOf(lie), price: hexOf(price), isWhole },
      {
        truth,
        transaction: { from: isSender ? victim : addressOf(1) },
        honestBalances: [before, before - fee + netOf(truth)],
      },
    )
    const verified = stored.filter(({ detail }) => detail?.verified !== false)
    counts.refused += stored.length - verified.length
    if (verified.length === 0) return
    counts.verified++
    const moves = verified.map(({ from, to, value }) => ({
      ...{ from: `0x${from.toString('hex')}`, to: `0x${to.toString('hex')}`, value },
    }))
    expect(netOf(moves)).toBe(netOf(truth))
    const isBoth =
      moves.some(({ from }) => from === victim) && moves.some(({ to }) => to === victim)
    if (isBoth) expect(textsOf(moves)).toEqual(textsOf(truth))
  })
  await fc.assert(check, { numRuns: 400 })
  expect(counts.verified).toBeGreaterThan(20)
  expect(counts.refused).toBeGreaterThan(20)
})
