// The suite that every chain family passes: order of blocks, reorganizations, restarts, missing history and
// failing nodes. A family provides a chain and the means to move it. Production code does not import this
// folder.

import { setImmediate as turn } from 'node:timers/promises'
import { beforeAll, describe, expect, it } from 'vitest'
import { createByteSet, keyOf } from '../../lib/bytes.ts'
import {
  type BlockContent,
  type Chain,
  type ChainBlock,
  type ChainEvent,
  ChainUnavailableError,
  type Position,
  type Tracked,
} from '../chain.ts'

/** A chain and the means to make it do something; what a chain's nodes cannot do is left out. */
export type ChainHarness = {
  chain: Chain
  /** Different accounts by number; those below 10 have enough to pay with. */
  account(number: number): Buffer
  /** Puts one payment of the native coin into a new block. */
  pay(payment: { from: Buffer; to: Buffer; value: bigint }): Promise<void>
  /** Makes that many blocks. */
  mine(count: number): Promise<void>
  /** Replaces that many of the newest blocks by one more, with other content. */
  reorganize?(depth: number): Promise<void>
  /** Makes a block with something that the code does not know. */
  mineUnknown?(): Promise<void>
  /** Lets the nodes not answer, be unreachable, or work again. */
  setMode?(mode: 'up' | 'down' | 'hanging'): Promise<void>
  stop(): Promise<void>
}

const never = new AbortController().signal
const abortMs = 100

const trackedOf = (accounts: Iterable<Buffer>): Tracked => ({
  accounts: createByteSet(accounts),
  contracts: createByteSet([]),
  tokenAccount: () => [],
})

/** Follows from a position until a block satisfies; gives the blocks on the way. */
const take = async (
  chain: Chain,
  after: Position,
  until: (block: ChainBlock) => boolean,
): Promise<ChainBlock[]> => {
  const taken: ChainBlock[] = []
  for await (const event of chain.follow(after, AbortSignal.timeout(30_000))) {
    if (event.kind !== 'blocks') throw new Error(`unexpected ${event.kind}`)
    for (const block of event.blocks) {
      taken.push(block)
      if (until(block)) return taken
    }
  }
  return taken
}

type Work = (signal: AbortSignal) => Promise<unknown>

/** The best of three: a machine that is busy with something else proves nothing. */
const timeToEnd = async (work: Work): Promise<number> => {
  const times: number[] = []
  while (times.length < 3 && !times.some((ms) => ms < abortMs)) times.push(await timeOnce(work))
  return Math.min(...times)
}

const timeOnce = async (work: Work): Promise<number> => {
  const controller = new AbortController()
  const ended = work(controller.signal).catch(() => {})
  // Into the middle of it: the first question is on its way to the node by then.
  for (let turns = 0; turns < 20; turns++) await turn()
  const begun = performance.now()
  controller.abort(new Error('enough'))
  await ended
  return performance.now() - begun
}

/** Reorganizations, ends and outages: what happens while a chain is read. */
function describeInterruptions(
  made: () => ChainHarness,
  catchUp: (after: Position) => Promise<ChainBlock[]>,
): void {
  it('says that the chain left a block, and gives the new branch from the ancestor', async (context) => {
    const harness = made()
    const { chain } = harness
    if (!chain.reorganizes || !harness.reorganize) return context.skip()
    const ancestor = await chain.head(never)
    await harness.mine(3)
    const old = await chain.head(never)
    await harness.reorganize(3)
    const events: ChainEvent[] = []
    for await (const event of chain.follow(old, AbortSignal.timeout(30_000))) events.push(event)
    expect(events).toEqual([{ kind: 'fork' }])
    const branch = await catchUp(ancestor)
    expect(branch).toHaveLength(4)
    expect(branch[0]!.parent_hash).toEqual(ancestor.hash)
    expect(branch[2]!.hash).not.toEqual(old.hash)
    expect((await chain.header(old.number, never))?.hash).toEqual(branch[2]!.hash)
    const query = [{ address: harness.account(1), asset: chain.native }]
    await expect(chain.readBalances(query, old, never)).rejects.toThrow('')
  })

  it('stops following within 100 ms, and gives nothing after', async () => {
    const harness = made()
    const { chain } = harness
    const begin = await chain.head(never)
    const ms = await timeToEnd(async (signal) => {
      for await (const event of chain.follow(begin, signal))
        expect(signal.aborted, event.kind).toBe(false)
    })
    expect(ms).toBeLessThan(abortMs)
  })

  it('aborts any request within 100 ms of its signal', async (context) => {
    const harness = made()
    const { chain } = harness
    if (!harness.setMode) return context.skip()
    const at = await chain.head(never)
    await harness.setMode('hanging')
    try {
      const query = [{ address: harness.account(1), asset: chain.native }]
      for (const ask of [
        (signal: AbortSignal) => chain.head(signal),
        (signal: AbortSignal) => chain.header(at.number, signal),
        (signal: AbortSignal) => chain.readBalances(query, at, signal),
      ])
        expect(await timeToEnd(ask)).toBeLessThan(abortMs)
    } finally {
      await harness.setMode('up')
    }
  })

  it('reports that no node answers, and continues when one does', async (context) => {
    const harness = made()
    const { chain } = harness
    if (!harness.setMode) return context.skip()
    const begin = await chain.head(never)
    await harness.setMode('down')
    const query = [{ address: harness.account(1), asset: chain.native }]
    await expect(chain.readBalances(query, begin, never)).rejects.toThrow(ChainUnavailableError)
    await harness.setMode('up')
    await harness.mine(2)
    expect(await catchUp(begin)).toHaveLength(2)
  })
}

/** What every chain must do, whatever its nodes are. */
export function describeChain(name: string, create: () => Promise<ChainHarness>): void {
  describe(`the chain ${name}`, () => {
    let harness: ChainHarness
    let chain: Chain
    beforeAll(async () => {
      harness = await create()
      chain = harness.chain
      return () => harness.stop()
    })
    const head = () => chain.head(never)
    const catchUp = async (after: Position): Promise<ChainBlock[]> => {
      const { number } = await head()
      return await take(chain, after, (block) => block.number >= number)
    }
    const contentOf = (block: ChainBlock, ...accounts: Buffer[]): BlockContent =>
      block.decode(trackedOf(accounts))

    it('says what it is, always the same', async () => {
      const identity = await chain.identity(never)
      expect(identity).not.toBe('')
      await harness.mine(1)
      expect(await chain.identity(never)).toBe(identity)
    })

    it('gives every block once, in order, as the child of the one before', async () => {
      const begin = await head()
      await harness.mine(120)
      const blocks = await catchUp(begin)
      expect(blocks).toHaveLength(120)
      let before: Pick<ChainBlock, 'number' | 'hash' | 'time'> = begin
      for (const block of blocks) {
        expect(block.number).toBe(before.number + 1)
        expect(block.parent_hash).toEqual(before.hash)
        expect(block.time).toBeGreaterThanOrEqual(before.time)
        before = block
      }
      const some = blocks[60]!
      expect(await chain.header(some.number, never)).toMatchObject({ hash: some.hash })
      expect(await chain.header(before.number + 1_000_000, never)).toBeUndefined()
    })

    it('announces a new block by itself', async () => {
      const begin = await head()
      const arriving = take(chain, begin, () => true)
      await harness.mine(1)
      expect((await arriving)[0]?.number).toBe(begin.number + 1)
    })

    it('finds a payment once, for both ends, among the candidates', async () => {
      const [from, to] = [harness.account(1), harness.account(21)]
      const begin = await head()
      await harness.pay({ from, to, value: 12_345n })
      const blocks = await catchUp(begin)
      const found = blocks.flatMap((block) => contentOf(block, from, to).movements)
      const mine = found.filter(({ value }) => value === 12_345n)
      const ends = mine.flatMap(({ only }) => (only ? [only] : ['from', 'to']))
      expect(ends.toSorted()).toEqual(['from', 'to'])
      for (const movement of mine) {
        expect(movement).toMatchObject({ from, to, asset: chain.native })
        expect(movement.transaction_hash.length).toBeGreaterThan(0)
        expect(movement.transaction_fee).toBeGreaterThanOrEqual(0n)
      }
      const touched = blocks.flatMap((block) => contentOf(block, from, to).touched)
      for (const account of [from, to]) {
        expect(touched.some(({ address }) => address.equals(account))).toBe(true)
        const named = blocks.flatMap((block) => [...block.accounts(createByteSet([]))])
        expect(named.some((address) => address.equals(account))).toBe(true)
      }
    })

    it('decodes the same for any tracked accounts and any number of times', async () => {
      const accounts = [1, 2, 3, 22, 23].map(harness.account)
      const begin = await head()
      for (const value of [7n, 8n, 9n])
        for (const to of [22, 23])
          await harness.pay({
            from: harness.account(Number(value) - 6),
            to: harness.account(to),
            value,
          })
      const [once, again] = [await catchUp(begin), await catchUp(begin)]
      expect(again.map(({ hash }) => hash)).toEqual(once.map(({ hash }) => hash))
      for (const [at, block] of once.entries()) {
        const all = contentOf(block, ...accounts)
        expect(contentOf(again[at]!, ...accounts)).toEqual(all)
        const ordinals = all.movements.map(({ ordinal }) => ordinal)
        expect(new Set(ordinals).size).toBe(ordinals.length)
        expect(ordinals).toEqual(ordinals.toSorted((a, b) => a - b))
        for (const account of accounts) {
          const own = contentOf(block, account).movements
          expect(all.movements).toEqual(expect.arrayContaining([...own]))
        }
        expect(contentOf(block).movements).toEqual([])
      }
    })

    it('knows balances at a block, or how they change from block to block', async () => {
      const [from, to] = [harness.account(1), harness.account(24)]
      const begin = await head()
      const query = [{ address: to, asset: chain.native }]
      const [before] = await chain.readBalances(query, begin, never)
      await harness.pay({ from, to, value: 77n })
      const blocks = await catchUp(begin)
      const last = blocks.at(-1)!
      await harness.pay({ from, to, value: 1n })
      const [after] = await chain.readBalances(query, last, never)
      const deltas = blocks.flatMap((block) =>
        contentOf(block, to)
          .touched.filter(({ address }) => address.equals(to))
          .map(({ delta }) => delta ?? 0n),
      )
      if (chain.balances === 'delta') {
        expect(deltas.reduce((sum, delta) => sum + delta, 0n)).toBe(77n)
        expect(after!.block_number).toBeGreaterThanOrEqual(last.number)
        expect(after!.balance! - before!.balance!).toBe(78n)
      } else {
        expect(after).toEqual({ balance: before!.balance! + 77n, block_number: last.number })
        expect((await chain.readBalances(query, begin, never))[0]).toEqual(before)
      }
    })

    it('answers many balances in the order of the questions', async () => {
      const at = await head()
      const accounts = Array.from({ length: 250 }, (_, i) => harness.account(i % 50))
      const queries = accounts.map((address) => ({ address, asset: chain.native }))
      const answers = await chain.readBalances(queries, at, never)
      const byAccount = new Map<string, bigint>()
      for (const [index, { balance }] of answers.entries()) {
        const key = keyOf(accounts[index]!)
        expect(byAccount.get(key) ?? balance).toBe(balance)
        byAccount.set(key, balance!)
      }
      expect(await chain.readBalances([], at, never)).toEqual([])
    })

    it('reads back every address that it prints', () => {
      for (let number = 0; number < 30; number++) {
        const bytes = harness.account(number)
        expect(chain.parseAddress(chain.formatAddress(bytes))).toEqual({ ok: true, bytes })
      }
    })

    it('counts and omits unknown entries', async (context) => {
      if (!harness.mineUnknown) return context.skip()
      const begin = await head()
      await harness.mineUnknown()
      const blocks = await catchUp(begin)
      const counts = blocks.flatMap((block) =>
        Object.values(contentOf(block, harness.account(1)).unknown_kinds ?? {}),
      )
      expect(counts.reduce((sum, count) => sum + count, 0)).toBeGreaterThan(0)
    })

    describeInterruptions(() => harness, catchUp)
  })
}
