import { describe, expect, it } from 'vitest'
import type { Head } from '../../chains/evm/pool/pool-types.ts'
import { silentLog } from '../../lib/log.ts'
import { createFakePool } from '../testing/fake-pool.ts'
import { createChainView } from './chain-view.ts'

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
  return { fork: (branch: string, above: number) => forks.set(branch, above), head }
}

const open = (finalityDepth = 5) => {
  const pool = createFakePool({ upstreams: 2 })
  const blocks = createBlocks()
  const dropped: number[] = []
  let time = 0
  pool.best = blocks.head(100)
  pool.answer = ({ params }) => {
    const [wanted] = JSON.parse(params)
    for (const branch of ['a', 'b', 'c'])
      for (let number = 50; number < 200; number++) {
        const { hash: own, parent_hash } = blocks.head(number, branch)
        if (own === wanted) return { ok: true, result: `{"parentHash":"${parent_hash}"}` }
      }
    return { ok: true, result: 'null' }
  }
  const view = createChainView({
    pool,
    prefix: 'eth',
    log: silentLog,
    now: () => time,
    finalityDepth,
    onDropped: (above) => dropped.push(above),
  })
  dropped.length = 0
  const settle = async () => {
    for (let turn = 0; turn < 200; turn++) await Promise.resolve()
  }
  return {
    pool,
    blocks,
    view,
    dropped,
    settle,
    pass: (ms: number) => {
      time += ms
    },
  }
}

describe('the view of a chain', () => {
  it('begins with the head and its parent and grows with it', () => {
    const { view, pool, blocks } = open()
    expect([98, 99, 100, 101].map(view.hashAt)).toEqual([undefined, hash(99), hash(100), undefined])
    pool.show(blocks.head(101))
    expect(view.hashAt(101)).toBe(hash(101))
    expect(view.numberOf(hash(100))).toBe(100)
    expect(view.final()).toBe(96)
    expect(pool.sent.length).toBe(0)
  })

  it('vouches for nothing while it fills a gap, and drops nothing that is still there', async () => {
    const { view, pool, blocks, dropped, settle } = open()
    pool.show(blocks.head(104))
    expect(view.hashAt(100)).toBeUndefined()
    await settle()
    expect([99, 100, 101, 102, 103, 104].map(view.hashAt)).toEqual(
      [99, 100, 101, 102, 103, 104].map((number) => hash(number)),
    )
    expect(dropped).toEqual([])
  })

  it('finds where a new branch leaves the old one', async () => {
    const { view, pool, blocks, dropped, settle } = open()
    for (const number of [101, 102, 103]) pool.show(blocks.head(number))
    blocks.fork('b', 101)
    pool.show(blocks.head(105, 'b'))
    await settle()
    expect(view.hashAt(101)).toBe(hash(101))
    expect(view.hashAt(102)).toBe(hash(102, 'b'))
    expect(view.hashAt(105)).toBe(hash(105, 'b'))
    expect(view.numberOf(hash(102))).toBeUndefined()
    expect(Math.min(...dropped)).toBe(101)
  })

  it('sees a swap at the same height at once', () => {
    const { view, pool, blocks, dropped } = open()
    pool.show(blocks.head(101))
    blocks.fork('b', 100)
    pool.show(blocks.head(101, 'b'))
    expect(dropped[0]).toBeLessThanOrEqual(100)
    expect(view.hashAt(101)).not.toBe(hash(101))
  })

  it('flushes everything when blocks go that were taken for final', async () => {
    const { view, pool, blocks, dropped, settle } = open(2)
    for (let number = 101; number <= 106; number++) pool.show(blocks.head(number))
    blocks.fork('b', 101)
    pool.show(blocks.head(107, 'b'))
    await settle()
    expect(dropped.at(-1)).toBe(-1)
    expect(view.hashAt(103)).toBe(hash(103, 'b'))
  })

  it('begins anew when a branch cannot be followed back', async () => {
    const { view, pool, blocks, dropped, settle } = open()
    blocks.fork('b', 98)
    pool.answer = () => ({ failure: 'NO_UPSTREAM' })
    pool.show(blocks.head(102, 'b'))
    await settle()
    expect(view.hashAt(102)).toBe(hash(102, 'b'))
    expect(view.hashAt(100)).toBeUndefined()
    expect(dropped.at(-1)).toBe(view.final() < 0 ? -1 : 95)
  })

  it('trusts no block above the point where nodes disagree, until they agree or one stops announcing', async () => {
    const { view, pool, blocks, settle, pass } = open()
    for (const number of [101, 102, 103]) pool.show(blocks.head(number))
    blocks.fork('b', 101)
    pool.show(blocks.head(102, 'b'), 'node-1', false)
    await settle()
    expect(view.hashAt(101)).toBe(hash(101))
    expect(view.hashAt(103)).toBeUndefined()
    pool.show(blocks.head(104))
    await settle()
    expect(view.hashAt(104)).toBeUndefined()
    pool.show(blocks.head(103), 'node-1', false)
    await settle()
    expect(view.hashAt(104)).toBe(hash(104))
    pool.show(blocks.head(102, 'b'), 'node-1', false)
    await settle()
    pass(61_000)
    pool.show(blocks.head(105))
    await settle()
    expect(view.hashAt(105)).toBe(hash(105))
  })

  it('takes a node that lags for one that lags', async () => {
    const { view, pool, blocks, dropped, settle } = open()
    pool.show(blocks.head(101))
    pool.show(blocks.head(100), 'node-1', false)
    await settle()
    expect(view.hashAt(101)).toBe(hash(101))
    expect(dropped).toEqual([])
  })

  it('goes back when the pool itself does', () => {
    const { view, pool, blocks, dropped } = open()
    for (const number of [101, 102]) pool.show(blocks.head(number))
    pool.show(blocks.head(101))
    expect(view.hashAt(102)).toBeUndefined()
    expect(view.hashAt(101)).toBe(hash(101))
    expect(dropped).toEqual([101])
  })
})
