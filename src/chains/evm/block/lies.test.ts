import { setImmediate as turn } from 'node:timers/promises'
import { getContractAddress, parseTransaction } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { describe, expect, it } from 'vitest'
import { waitFor } from '../../../../test/helpers/wait-for.ts'
import { createByteSet } from '../../../lib/bytes.ts'
import {
  BlockForgedError,
  type ChainBlock,
  type ChainEvent,
  ChainUnavailableError,
} from '../../chain.ts'
import { createEvmChain } from '../chain.ts'
import { bytesOf, type RawBlock, type RawReceipt } from '../codec/raw.ts'
import { transferTopic } from '../codec/topics.ts'
import { addressOf, type StubBlock, stubChain, wordOf } from '../testing/stub-chain.ts'
import { createStubPool, type StubNode, type StubPool } from '../testing/stub-pool.ts'

const [a, b, coin] = [1, 2, 0xc0].map(addressOf) as [string, string, string]
const paid = (value: number) => ({
  address: coin,
  topics: [transferTopic, wordOf(a), wordOf(b)],
  data: wordOf(value),
})
const contents = [
  [],
  [{ from: a, to: coin, logs: [paid(5), paid(6)] }],
  [{ from: a, to: b, value: 7n }],
  [],
]
const blocks = stubChain(contents)
const genesis = { number: 0, hash: bytesOf(blocks[0]!.block.hash) }

const open = (pool: StubPool) => createEvmChain({ pool, pollMs: 20, patienceMs: 60, inFlight: 4 })

/** Follows until a number of blocks has come, or for a while. */
const take = async (
  pool: StubPool,
  { count, after = genesis, ms = 20_000 }: { count: number; after?: typeof genesis; ms?: number },
) => {
  const taken: ChainBlock[] = []
  const events: ChainEvent[] = []
  for await (const event of open(pool).follow(after, AbortSignal.timeout(ms))) {
    events.push(event)
    if (event.kind === 'blocks') taken.push(...event.blocks)
    if (taken.length >= count) break
  }
  return { taken, events }
}

const tracked = {
  accounts: createByteSet([bytesOf(b)]),
  contracts: createByteSet([bytesOf(coin)]),
  tokenAccount: () => [],
}
const valuesOf = (taken: readonly ChainBlock[]) =>
  taken.flatMap((block) => block.decode(tracked).movements.map(({ value }) => value))

type Lie = NonNullable<StubNode['lie']>
const onBlock =
  (change: (block: RawBlock) => unknown): Lie =>
  (method, result) =>
    method === 'eth_getBlockByNumber' && result ? change(result as RawBlock) : undefined
const onReceipts =
  (change: (receipts: RawReceipt[]) => unknown): Lie =>
  (method, result) =>
    method === 'eth_getBlockReceipts' && (result as RawReceipt[] | null)?.length
      ? change(result as RawReceipt[])
      : undefined
const changeLogs = (change: (logs: RawReceipt['logs']) => RawReceipt['logs']) =>
  onReceipts((all) => all.map((receipt) => ({ ...receipt, logs: change(receipt.logs) })))

const changeFirst = (change: object) =>
  onBlock((block) => ({
    ...block,
    transactions: block.transactions.map((one, index) =>
      index === 0 ? { ...one, ...change } : one,
    ),
  }))

const lies: [string, Lie][] = [
  ['says nothing of a block', onBlock(() => null)],
  ['gives a wrong parent', onBlock((block) => ({ ...block, parentHash: wordOf(666) }))],
  ['gives a wrong time', onBlock((block) => ({ ...block, timestamp: '0x1' }))],
  [
    'gives another block',
    (method) => (method === 'eth_getBlockByNumber' ? blocks[3]!.block : undefined),
  ],
  [
    'gives hashes in the place of transactions',
    onBlock((block) => ({ ...block, transactions: [wordOf(1)] })),
  ],
  ['gives a block without transactions', onBlock(({ transactions: _, ...block }) => block)],
  ['changes a payment', changeFirst({ value: '0x63' })],
  ['changes who is paid', changeFirst({ to: addressOf(0xbad) })],
  [
    'leaves out a transaction',
    onBlock((block) => ({ ...block, transactions: block.transactions.slice(1) })),
  ],
  ['leaves out a log', changeLogs((logs) => logs.slice(1))],
  ['leaves out all logs', changeLogs(() => [])],
  ['adds a log', changeLogs((logs) => [...logs, paid(1_000_000)])],
  ['doubles a log', changeLogs((logs) => logs.flatMap((log) => [log, log]))],
  ['changes an amount', changeLogs((logs) => logs.map((log) => ({ ...log, data: wordOf(99) })))],
  ['changes the order of logs', changeLogs((logs) => logs.toReversed())],
  ['calls a failure a success', onReceipts((all) => all.map((one) => ({ ...one, status: '0x0' })))],
  ['leaves out a receipt', onReceipts((all) => all.slice(1))],
  [
    'gives receipts of another block',
    onReceipts((all) => all.map((one) => ({ ...one, blockHash: wordOf(9) }))),
  ],
  ['gives no receipts', onReceipts(() => null)],
  // Digits that prove what they should, in a text that reads as another number.
  ['writes a payment without its prefix', changeFirst({ value: '9907' })],
  [
    'writes an amount that is no text',
    changeLogs((logs) => logs.map((log) => ({ ...log, data: null! }))),
  ],
  ['has an empty receiver', changeFirst({ to: '0x' })],
  ['has an empty sender', changeFirst({ from: '0x' })],
  ['gives a payment with a space in it', changeFirst({ value: '0x7 ' })],
  [
    'writes topics in capitals',
    changeLogs((logs) =>
      logs.map((log) => ({
        ...log,
        topics: log.topics.map((topic) => `0x${topic.slice(2).toUpperCase()}`),
      })),
    ),
  ],
  ['gives receipts of nothing', onReceipts((all) => all.map(() => null))],
  ['gives logs of nothing', changeLogs((logs) => logs.map(() => null!))],
  [
    'gives topics that are no text',
    changeLogs((logs) => logs.map((log) => ({ ...log, topics: [[...log.topics[0]!]] as never }))),
  ],
  [
    'does not say what was used',
    onReceipts((all) => all.map((one) => ({ ...one, gasUsed: 'much' }))),
  ],
  [
    'adds a payment of an invented type',
    onBlock((block) => ({
      ...block,
      transactions: [
        ...block.transactions,
        {
          type: '0x55',
          hash: wordOf(77),
          from: a,
          to: b,
          value: '0x63',
          nonce: '0x1',
          input: '0x',
        },
      ],
    })),
  ],
  ['gives a payment an invented type', changeFirst({ type: '0x55', value: '0x63' })],
  [
    'gives receipts an invented type and other amounts',
    onReceipts((all) =>
      all.map((one) => ({
        ...one,
        type: '0x55',
        logs: one.logs.map((log) => ({ ...log, data: wordOf(99) })),
      })),
    ),
  ],
  [
    'adds an unknown member to a header that is wrong',
    onBlock((block) => ({ ...block, transactionsRoot: wordOf(4), unheardOf: '0x1' })),
  ],
  [
    'hides a changed payment behind an unknown member',
    onBlock((block) => ({
      ...block,
      unheardOf: '0x1',
      transactions: block.transactions.map((one) => ({ ...one, type: '0x55', value: '0x63' })),
    })),
  ],
  [
    'says that a transaction used other gas',
    onReceipts((all) => all.map((one) => ({ ...one, gasUsed: '0x1' }))),
  ],
  ['gives nonsense', () => ({ nonsense: [1] })],
  ['gives a text', () => 'a lie'],
]

describe('a node that', () => {
  it.each(lies)('%s is found out, and another one is asked', async (_, lie) => {
    const pool = createStubPool([{ blocks, lie }, { blocks }])
    const { taken } = await take(pool, { count: 3 })
    expect(taken.map(({ number }) => number)).toEqual([1, 2, 3])
    expect(valuesOf(taken)).toEqual([5n, 6n, 7n])
  })

  it.each(lies)('%s gets nothing in when there is no other', async (_, lie) => {
    const pool = createStubPool([{ blocks, lie }])
    const taken: ChainBlock[] = []
    const following = async () => {
      for await (const event of open(pool).follow(genesis, AbortSignal.timeout(300)))
        if (event.kind === 'blocks') taken.push(...event.blocks)
    }
    await following().catch(() => {})
    const right = [5n, 6n, 7n]
    expect(valuesOf(taken).every((value, index) => value === right[index])).toBe(true)
    for (const block of taken)
      expect(block.hash.equals(bytesOf(blocks[block.number]!.block.hash))).toBe(true)
  })

  it('pays a tracked address by a false contract address is found out', async () => {
    const creator = addressOf(0xc4ea)
    const created = getContractAddress({ from: creator as `0x${string}`, nonce: 1_000n })
    const chain = stubChain([
      [],
      [{ from: creator, to: null, value: 9n, receipt: { contractAddress: created } }],
    ])
    const lie = onReceipts((all) => all.map((one) => ({ ...one, contractAddress: b })))
    const after = { number: 0, hash: bytesOf(chain[0]!.block.hash) }
    const pool = createStubPool([{ blocks: chain, lie }, { blocks: chain }])
    const { taken } = await take(pool, { count: 1, after })
    expect(valuesOf(taken)).toEqual([])
    const alone = createStubPool([{ blocks: chain, lie }])
    await expect(take(alone, { count: 1, after, ms: 200 })).rejects.toThrow()
  })

  it('adds members that the header does not need is accepted', async () => {
    const lie = onBlock((block) => ({ ...block, l1BlockNumber: '0x1' }))
    const { taken } = await take(createStubPool([{ blocks, lie }]), { count: 3 })
    expect(valuesOf(taken)).toEqual([5n, 6n, 7n])
  })

  it('gives a false sender is detected when the block is checked, and not trusted again', async () => {
    const payer = privateKeyToAccount(`0x${'07'.repeat(32)}`)
    const raw = await payer.signTransaction({
      type: 'legacy',
      chainId: 1,
      nonce: 1_000,
      gas: 21_000n,
      gasPrice: 2n,
      to: b as `0x${string}`,
      value: 9n,
    })
    const { v, r, s } = parseTransaction(raw) as { v: bigint; r: string; s: string }
    const signed = {
      chainId: '0x1',
      gas: '0x5208',
      gasPrice: '0x2',
      v: `0x${v.toString(16)}`,
      r,
      s,
    }
    const from = payer.address.toLowerCase()
    const chain = stubChain([[], [{ type: '0x0', from, to: b, value: 9n, transaction: signed }]])
    const lie = changeFirst({ from: a })
    const evm = open(createStubPool([{ blocks: chain, lie }, { blocks: chain }]))
    const after = { number: 0, hash: bytesOf(chain[0]!.block.hash) }
    const next = async (): Promise<ChainBlock> => {
      for await (const event of evm.follow(after, AbortSignal.timeout(20_000)))
        if (event.kind === 'blocks') return event.blocks[0]!
      throw new Error('no block')
    }
    const signal = AbortSignal.timeout(20_000)
    await expect((await next()).check!(tracked, signal)).rejects.toThrow(BlockForgedError)
    const again = await next()
    await again.check!(tracked, signal)
    expect(again.decode(tracked).movements.map((one) => one.from)).toEqual([bytesOf(from)])
  })

  it('gives a transaction another hash is refused', async () => {
    const lie: Lie = (_, result) => {
      const text = JSON.stringify(result)
      return JSON.parse(text.replaceAll(blocks[2]!.block.transactions[0]!.hash, wordOf(9)))
    }
    const { taken } = await take(createStubPool([{ blocks, lie }]), { count: 3 })
    const [moved] = taken[1]!.decode(tracked).movements
    expect(moved!.transaction_hash).toEqual(bytesOf(blocks[2]!.block.transactions[0]!.hash))
  })

  it('lags does not make the chain go back', async () => {
    const pool = createStubPool([{ blocks: blocks.slice(0, 2) }, { blocks }])
    const last = { number: 3, hash: bytesOf(blocks[3]!.block.hash) }
    const events: ChainEvent[] = []
    const following = async () => {
      for await (const event of open(pool).follow(last, AbortSignal.timeout(200)))
        events.push(event)
    }
    await expect(following()).rejects.toThrow('')
    expect(events).toEqual([])
    expect((await open(pool).head(AbortSignal.timeout(20_000))).number).toBe(3)
  })

  it('is behind what we have, alone, does not make the chain go back', async () => {
    const pool = createStubPool([{ blocks: blocks.slice(0, 2) }])
    const events: ChainEvent[] = []
    const last = { number: 3, hash: bytesOf(blocks[3]!.block.hash) }
    const following = async () => {
      for await (const event of open(pool).follow(last, AbortSignal.timeout(200)))
        events.push(event)
    }
    await expect(following()).rejects.toThrow('')
    expect(events).toEqual([])
  })

  it('announces a head that does not exist: no delay, no gap', async () => {
    const pool = createStubPool([{ blocks }])
    pool.setHead(1_000)
    const enough = new AbortController()
    const events: ChainEvent[] = []
    const following = async () => {
      for await (const event of open(pool).follow(genesis, enough.signal)) events.push(event)
    }
    const ended = following().catch(() => 'ended')
    const taken = () => events.flatMap((event) => (event.kind === 'blocks' ? event.blocks : []))
    await waitFor('all blocks that there are', () => taken().length >= 3)
    // It continues asking for those that there are not.
    const asked = pool.methods.length
    await waitFor('many more questions', () => pool.methods.length > asked + 10)
    enough.abort(new Error('enough'))
    expect(await ended).toBe('ended')
    expect(events.every(({ kind }) => kind === 'blocks')).toBe(true)
    expect(taken()).toHaveLength(3)
  })
})

describe('nodes', () => {
  const branch = (parent: StubBlock, count: number) =>
    stubChain(
      Array.from({ length: count }, () => []),
      { parent, salt: 'other' },
    )

  it('that agree on another branch are followed', async () => {
    const other = [...blocks.slice(0, 2), ...branch(blocks[1]!, 4)]
    const pool = createStubPool([{ blocks: other }])
    const last = { number: 3, hash: bytesOf(blocks[3]!.block.hash) }
    expect((await take(pool, { count: 1, after: last })).events).toEqual([{ kind: 'fork' }])
    const ancestor = { number: 1, hash: bytesOf(blocks[1]!.block.hash) }
    expect((await take(pool, { count: 4, after: ancestor })).taken).toHaveLength(4)
  })

  it('whose branch is replaced at the same height are followed', async () => {
    const pool = createStubPool([{ blocks }])
    const last = { number: 3, hash: bytesOf(blocks[3]!.block.hash) }
    const following = take(pool, { count: 1, after: last })
    await waitFor('it asks for the next one', () => pool.methods.length > 5)
    pool.nodes[0] = { blocks: [...blocks.slice(0, 3), ...branch(blocks[2]!, 1)] }
    pool.push()
    expect((await following).events).toEqual([{ kind: 'fork' }])
  })

  it('that cannot give receipts by the block are asked for each', async () => {
    const pool = createStubPool([{ blocks }], [])
    expect(valuesOf((await take(pool, { count: 3 })).taken)).toEqual([5n, 6n, 7n])
    expect(pool.methods).not.toContain('eth_getBlockReceipts')
  })

  it('that have pruned blocks leave a reported gap', async () => {
    const chain = stubChain(Array.from({ length: 40 }, () => []))
    const pool = createStubPool([{ blocks: chain.slice(25) }])
    const { events, taken } = await take(pool, { count: 15 })
    expect(events[0]).toEqual({
      kind: 'gap',
      from: 1,
      to: { number: 24, hash: bytesOf(chain[24]!.block.hash) },
      reason: expect.any(String),
    })
    expect(taken.map(({ number }) => number)).toEqual(
      Array.from({ length: 15 }, (_, index) => 25 + index),
    )
  })

  it('are asked for no more blocks than a batch ahead of the reader', async () => {
    const chain = stubChain(Array.from({ length: 120 }, () => []))
    const pool = createStubPool([{ blocks: chain }])
    for await (const _ of open(pool).follow(
      { number: 0, hash: bytesOf(chain[0]!.block.hash) },
      AbortSignal.timeout(20_000),
    )) {
      // Every answer takes a turn: a reader that continued would have read more by now.
      for (let turns = 0; turns < 200; turns++) await turn()
      break
    }
    expect(pool.methods.length).toBeLessThan(60)
  })

  it('that are all unreachable are reported as such', async () => {
    const pool = createStubPool([])
    const chain = open({ ...pool, head: () => undefined })
    await expect(chain.head(AbortSignal.timeout(20_000))).rejects.toThrow(ChainUnavailableError)
  })
})
