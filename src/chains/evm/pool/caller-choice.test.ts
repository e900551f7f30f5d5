import { describe, expect, test } from 'vitest'
import { learn, setUp } from '../testing/caller-setup.ts'
import { createFakeUpstream, type FakeUpstream, headOf, result } from '../testing/fake-upstream.ts'

describe('hedging', () => {
  test('asks a second node after the p95, and the first answer wins', async () => {
    const [a, b] = [createFakeUpstream('a'), createFakeUpstream('b', { priority: 1 })]
    const pool = setUp([a, b])
    await learn(pool, a)
    const outcomes = pool.call()
    await pool.clock.advance(10)
    expect(b.calls).toHaveLength(0)
    await pool.clock.advance(30)
    expect([a.calls.length, b.calls.length]).toEqual([1, 1])
    b.answer(result('b'))
    a.answer(result('a'))
    expect(outcomes).toEqual([result('b')])
  })

  test('asks a second node after one block where nothing was learned yet', async () => {
    const [a, b] = [createFakeUpstream('a'), createFakeUpstream('b', { priority: 1 })]
    const pool = setUp([a, b], { slowCallMs: 250 })
    // The share of extra calls must have room for one.
    for (let call = 0; call < 12; call++) {
      pool.call()
      a.answer(result(call))
    }
    pool.call()
    await pool.clock.advance(240)
    expect(b.calls).toHaveLength(0)
    await pool.clock.advance(20)
    expect(b.calls).toHaveLength(1)
  })

  test.each([
    // Usually fast and sometimes slower than a block: after a block, and not after its p95.
    [20, 250],
    // Usually slower than a block: after its p95.
    [600, 1_000],
  ])(
    'a method that takes %i ms is hedged after %i ms on a chain with blocks of 250 ms',
    async (usualMs, afterMs) => {
      const [a, b] = [createFakeUpstream('a'), createFakeUpstream('b', { priority: 1 })]
      const pool = setUp([a, b], { slowCallMs: 250 })
      for (let round = 0; round < 30; round++) {
        pool.call({ idempotent: false })
        await pool.clock.advance(round % 10 === 9 ? 1_000 : usualMs)
        a.answer(result(round))
      }
      // Other calls, so that the share of extra ones has room.
      for (let round = 0; round < 12; round++) {
        pool.call({ method: 'eth_chainId' })
        a.answer(result(round))
      }
      pool.call()
      await pool.clock.advance(afterMs - 10)
      expect(b.calls).toHaveLength(0)
      await pool.clock.advance(20)
      expect(b.calls).toHaveLength(1)
    },
  )

  test('never a call that may not be repeated', async () => {
    const [a, b] = [createFakeUpstream('a'), createFakeUpstream('b', { priority: 1 })]
    const pool = setUp([a, b])
    await learn(pool, a)
    pool.call({ idempotent: false })
    await pool.clock.advance(5_000)
    expect(b.calls).toHaveLength(0)
  })

  test('stays within its share when everything is slow', async () => {
    const [a, b] = [createFakeUpstream('a'), createFakeUpstream('b', { priority: 1 })]
    const pool = setUp([a, b])
    await learn(pool, a)
    for (let call = 0; call < 60; call++) pool.call()
    await pool.clock.advance(200)
    expect(b.calls.length).toBeGreaterThan(0)
    expect(b.calls.length).toBeLessThanOrEqual(9)
  })

  test('a failure after the hedge leaves the other call to answer', async () => {
    const [a, b] = [createFakeUpstream('a'), createFakeUpstream('b', { priority: 1 })]
    const pool = setUp([a, b])
    await learn(pool, a)
    const outcomes = pool.call()
    await pool.clock.advance(50)
    a.answer({ failed: 'closed', detail: '' })
    expect(outcomes).toEqual([])
    b.answer(result('b'))
    expect(outcomes).toEqual([result('b')])
  })
})

describe('the choice', () => {
  test('leaves out wrong chains, open circuits and nodes behind', () => {
    const nodes = ['wrong', 'open', 'behind', 'good'].map((name) => createFakeUpstream(name))
    const [wrong, open, behind, good] = nodes as [
      FakeUpstream,
      FakeUpstream,
      FakeUpstream,
      FakeUpstream,
    ]
    wrong.isWrongChain = true
    open.breaker.trip(0)
    behind.head = headOf(50)
    const { call } = setUp(nodes)
    for (let round = 0; round < 20; round++) call()
    expect(nodes.map(({ calls }) => calls.length)).toEqual([0, 0, 0, 20])
    expect(good.inFlight).toBe(20)
  })

  test('a node that lags is asked when no other is left', () => {
    const [a, b] = [createFakeUpstream('a', { head: 50 }), createFakeUpstream('b')]
    const { call } = setUp([a, b])
    const outcomes = call()
    b.answer({ failed: 'closed', detail: '' })
    a.answer(result(1))
    expect(outcomes).toEqual([result(1)])
  })

  test('spreads over equals, less to the slow one', () => {
    const [a, b] = [createFakeUpstream('a'), createFakeUpstream('b')]
    for (let call = 0; call < 50; call++) {
      a.latency.add(5)
      b.latency.add(15)
    }
    const { call } = setUp([a, b])
    for (let round = 0; round < 90; round++) call()
    expect(a.calls.length).toBeGreaterThan(b.calls.length)
    expect(b.calls.length).toBeGreaterThan(5)
  })
})
