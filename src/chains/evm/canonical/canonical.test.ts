import { describe, expect, it, onTestFinished } from 'vitest'
import { silentLog } from '../../../lib/log.ts'
import type { Head, PoolOutcome } from '../pool/pool-types.ts'
import { createFakeClock } from '../testing/fake-clock.ts'
import { type Change, createCanonical } from './canonical.ts'

const hash = (number: number, branch = 'a') =>
  `0x${Buffer.from(branch).toString('hex')}${number.toString(16).padStart(62, '0')}`

/** Blocks of several branches; a branch leaves `a` above a height. */
const createBlocks = () => {
  const forks = new Map<string, number>([['a', -1]])
  const branchAt = (number: number, branch: string) =>
    number > (forks.get(branch) ?? -1) ? branch : 'a'
  const head = (number: number, branch = 'a'): Head => ({
    number,
    hash: hash(number, branchAt(number, branch)),
    parent_hash: hash(number - 1, branchAt(number - 1, branch)),
    timestamp: number,
  })
  return { forks, fork: (branch: string, above: number) => forks.set(branch, above), head }
}

const text = ({ number, hash, parent_hash }: Head) =>
  JSON.stringify({ number: `0x${number.toString(16)}`, hash, parentHash: parent_hash })

const open = ({ finalityDepth = 5, forgets = false } = {}) => {
  const blocks = createBlocks()
  const clock = createFakeClock()
  const listeners = new Set<(head: Head, upstream: string) => void>()
  const states = new Map([
    ['node-0', 'healthy'],
    ['node-1', 'healthy'],
  ])
  const pool = { isAway: false, requests: 0, looks: 0 }
  const answer = (params: string): PoolOutcome => {
    pool.requests++
    if (pool.isAway) return { failure: 'NO_UPSTREAM' }
    const [wanted] = JSON.parse(params)
    if (!forgets)
      for (const branch of blocks.forks.keys())
        for (let number = 50; number < 200; number++) {
          const block = blocks.head(number, branch)
          if (block.hash === wanted) return { ok: true, result: text(block) }
        }
    return { ok: true, result: 'null' }
  }
  const changes: Change[] = []
  const canonical = createCanonical({
    pool: {
      head: () => blocks.head(100),
      onHead: (listener) => {
        listeners.add(listener)
        return () => listeners.delete(listener)
      },
      look: async () => void pool.looks++,
      request: async ({ params }) => answer(params),
      status: () => [...states].map(([name, state]) => ({ name, state })) as never,
    },
    prefix: 'eth',
    clock,
    log: silentLog,
    finalityDepth,
  })
  canonical.onChange((change) => changes.push(change))
  onTestFinished(canonical.stop)
  return {
    pool,
    blocks,
    clock,
    canonical,
    changes,
    states,
    show: (head: Head, upstream = 'node-0') => {
      for (const listener of listeners) listener(head, upstream)
    },
    dropped: () => changes.flatMap(({ droppedAbove }) => droppedAbove ?? []),
  }
}

describe('the canonical chain', () => {
  it('begins with the head and its parent and grows with it', () => {
    const { canonical, pool, blocks, show } = open()
    expect([98, 99, 100, 101].map(canonical.hashAt)).toEqual([
      undefined,
      hash(99),
      hash(100),
      undefined,
    ])
    show(blocks.head(101))
    expect(canonical.hashAt(101)).toBe(hash(101))
    expect(canonical.numberOf(hash(100))).toBe(100)
    expect(canonical.final()).toBe(96)
    expect(pool.requests).toBe(0)
  })

  it('confirms nothing while it links a head, then moves in one step', async () => {
    const { canonical, blocks, show, clock, changes } = open()
    show(blocks.head(104))
    expect([canonical.hashAt(100), canonical.isLinking(), canonical.head()?.number]).toEqual([
      undefined,
      true,
      100,
    ])
    await clock.advance(0)
    expect([100, 101, 102, 103, 104].map(canonical.hashAt)).toEqual(
      [100, 101, 102, 103, 104].map((number) => hash(number)),
    )
    expect(changes.map(({ added }) => added.map(({ number }) => number))).toEqual([
      [101, 102, 103, 104],
    ])
  })

  it('finds where a new branch leaves the old one', async () => {
    const { canonical, blocks, show, clock, changes, dropped } = open()
    for (const number of [101, 102, 103]) show(blocks.head(number))
    blocks.fork('b', 101)
    show(blocks.head(105, 'b'))
    await clock.advance(0)
    expect([101, 102, 105].map(canonical.hashAt)).toEqual([
      hash(101),
      hash(102, 'b'),
      hash(105, 'b'),
    ])
    expect([canonical.numberOf(hash(102)), canonical.isGone(hash(102))]).toEqual([undefined, true])
    expect(changes.at(-1)?.removed.map(({ number }) => number)).toEqual([102, 103])
    expect(dropped()).toEqual([101])
  })

  it('replaces a block at the same height at once when the same node replaces it', async () => {
    const { canonical, blocks, show, dropped } = open()
    show(blocks.head(101))
    blocks.fork('b', 100)
    show(blocks.head(101, 'b'))
    expect([canonical.hashAt(101), dropped()]).toEqual([hash(101, 'b'), [100]])
  })

  it('drops everything when blocks leave that counted as final', async () => {
    const { canonical, blocks, show, clock, dropped } = open({ finalityDepth: 2 })
    for (let number = 101; number <= 106; number++) show(blocks.head(number))
    blocks.fork('b', 101)
    show(blocks.head(107, 'b'))
    await clock.advance(0)
    expect(dropped()).toEqual([-1])
    expect(canonical.hashAt(103)).toBe(hash(103, 'b'))
  })

  it('starts over when a branch cannot be linked', async () => {
    const { canonical, pool, blocks, show, clock, changes } = open()
    blocks.fork('b', 100)
    pool.isAway = true
    show(blocks.head(103, 'b'))
    await clock.advance(4_000)
    expect([canonical.head()?.number, canonical.isLinking()]).toEqual([100, true])
    await clock.advance(2_000)
    expect(canonical.hashAt(103)).toBe(hash(103, 'b'))
    expect(canonical.hashAt(100)).toBeUndefined()
    expect(changes.at(-1)).toMatchObject({ isLost: true, droppedAbove: 95 })
  })

  it('starts over soon when no node has the ancestors of a head', async () => {
    const { canonical, blocks, show, clock } = open({ forgets: true })
    show(blocks.head(103))
    await clock.advance(1_500)
    expect([canonical.head()?.number, canonical.isLinking()]).toEqual([103, false])
  })

  it('keeps nothing above the point where nodes disagree, until they agree or one falls silent', async () => {
    const { canonical, blocks, show, clock } = open()
    for (const number of [101, 102, 103]) show(blocks.head(number))
    blocks.fork('b', 101)
    show(blocks.head(102, 'b'), 'node-1')
    expect([101, 103].map(canonical.hashAt)).toEqual([hash(101), undefined])
    expect(canonical.bestHashAt(103)).toBe(hash(103))
    show(blocks.head(104))
    expect(canonical.hashAt(104)).toBeUndefined()
    show(blocks.head(103), 'node-1')
    expect(canonical.hashAt(104)).toBe(hash(104))
    show(blocks.head(102, 'b'), 'node-1')
    await clock.advance(61_000)
    expect(canonical.hashAt(104)).toBe(hash(104))
  })

  it('is not moved by a node that lags or disconnects', async () => {
    const { canonical, blocks, show, clock, states, changes } = open()
    show(blocks.head(101))
    show(blocks.head(100), 'node-1')
    states.set('node-0', 'unreachable')
    await clock.advance(60_000)
    expect([canonical.head()?.number, changes.length]).toEqual([101, 1])
  })

  it('knows that a block above a shorter branch has left, until it is back', async () => {
    const { canonical, blocks, show, clock } = open()
    for (const number of [101, 102, 103]) show(blocks.head(number))
    blocks.fork('b', 101)
    show(blocks.head(102, 'b'))
    for (let second = 0; second < 3; second++) await clock.advance(1_000)
    expect(canonical.head()?.hash).toBe(hash(102, 'b'))
    expect([102, 103].map((number) => canonical.isGone(hash(number)))).toEqual([true, true])
    blocks.fork('c', 103)
    show(blocks.head(103))
    show(blocks.head(104))
    for (let second = 0; second < 3; second++) await clock.advance(1_000)
    expect([103, 102].map((number) => canonical.isGone(hash(number)))).toEqual([
      canonical.hashAt(103) !== hash(103),
      canonical.hashAt(102) !== hash(102),
    ])
  })

  it('accepts a rollback when the node that showed the tip shows a lower head for two seconds', async () => {
    const { canonical, blocks, show, clock, dropped } = open()
    for (const number of [101, 102]) show(blocks.head(number))
    show(blocks.head(101))
    await clock.advance(1_800)
    show(blocks.head(102))
    show(blocks.head(101))
    await clock.advance(1_800)
    expect(canonical.head()?.number).toBe(102)
    await clock.advance(500)
    expect([canonical.head()?.number, canonical.hashAt(102), dropped()]).toEqual([
      101,
      undefined,
      [101],
    ])
  })

  it('doubts a contradiction by another node for two seconds', async () => {
    const { canonical, blocks, show, clock, states } = open()
    for (const number of [101, 102]) show(blocks.head(number))
    states.set('node-0', 'unreachable')
    blocks.fork('b', 100)
    show(blocks.head(102, 'b'), 'node-1')
    await clock.advance(1_800)
    expect(canonical.head()?.hash).toBe(hash(102))
    await clock.advance(500)
    expect(canonical.head()?.hash).toBe(hash(102, 'b'))
  })

  it('traces the way from a block that left the chain', async () => {
    const { canonical, blocks, show, clock } = open()
    for (const number of [101, 102]) show(blocks.head(number))
    blocks.fork('b', 100)
    show(blocks.head(103, 'b'))
    await clock.advance(0)
    const path = canonical.pathFrom(hash(102))
    expect(path?.removed.map((block) => block.hash)).toEqual([hash(101), hash(102)])
    expect(path?.added.map((block) => block.number)).toEqual([101, 102, 103])
    expect(canonical.pathFrom(hash(77, 'c'))).toBeUndefined()
  })

  it('reads the heads again to settle', async () => {
    const { canonical, pool } = open()
    await canonical.settle()
    expect(pool.looks).toBe(1)
  })

  it('learns of the blocks below a head that could not be linked, and what was above it is gone', async () => {
    const { canonical, blocks, show, clock, pool, changes } = open()
    for (let number = 101; number <= 106; number++) show(blocks.head(number))
    pool.isAway = true
    blocks.fork('b', 99)
    show(blocks.head(105, 'b'))
    show(blocks.head(105, 'b'), 'node-1')
    for (let second = 0; second < 8; second++) await clock.advance(1_000)
    expect([changes.at(-1)?.isLost, canonical.head()?.hash]).toEqual([true, hash(105, 'b')])
    expect([canonical.isGone(hash(106)), canonical.bestHashAt(102)]).toEqual([true, undefined])
    pool.isAway = false
    // Another node is still on the old branch.
    show(blocks.head(104), 'node-1')
    for (let second = 0; second < 7; second++) await clock.advance(1_000)
    expect([102, 103].map(canonical.bestHashAt)).toEqual([hash(102, 'b'), hash(103, 'b')])
    expect(canonical.isDeepening()).toBe(false)
  })

  it('isolates a listener that throws', () => {
    const { canonical, blocks, show, changes } = open()
    canonical.onChange(() => {
      throw new Error('mine')
    })
    show(blocks.head(101))
    expect([changes.length, canonical.head()?.number]).toEqual([1, 101])
  })
})
