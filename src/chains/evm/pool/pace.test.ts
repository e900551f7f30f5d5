import { expect, test } from 'vitest'
import { createPace } from './pace.ts'

const setup = () => {
  let now = 0
  const clock = { now: () => now, sleep: async () => {} }
  const pace = createPace({ clock, probeIntervalMs: 1_000, probeTimeoutMs: 2_000, maxLag: 5 })
  /** Shows heads for a minute, one after each pause. */
  const run = (blockMs: number, from = 0) => {
    let number = from
    for (const end = now + 61_000; now < end; now += blockMs) pace.see(number++)
    return number
  }
  return { pace, run }
}

test.each([
  // Arbitrum, a chain of one second, Base, Gnosis, Ethereum.
  [250, 250, 12],
  [1_000, 250, 5],
  [2_000, 333, 5],
  [5_000, 833, 5],
  [12_000, 2_000, 5],
  [15_000, 2_000, 5],
])('with blocks every %i ms nodes are probed every %i ms', (blockMs, intervalMs, maxLag) => {
  const { pace } = setup()
  pace.know(blockMs)
  expect([Math.floor(pace.probeIntervalMs(false)), pace.maxLag()]).toEqual([intervalMs, maxLag])
})

test.each([
  [250, 1_000, 250],
  [400, 1_000, 400],
  [2_000, 2_000, 2_000],
  [12_000, 4_000, 12_000],
  [15_000, 4_000, 15_000],
])('with blocks every %i ms a probe has %i ms, and a call is slow after %i ms', (...expected) => {
  const { pace } = setup()
  expect([pace.probeTimeoutMs(), pace.slowCallMs()]).toEqual([2_000, Number.POSITIVE_INFINITY])
  const [blockMs] = expected
  pace.know(blockMs)
  expect([blockMs, pace.probeTimeoutMs(), pace.slowCallMs()]).toEqual(expected)
})

test('a node that pushes heads is not probed more often than configured', () => {
  const { pace } = setup()
  pace.know(250)
  expect(pace.probeIntervalMs(true)).toBe(1_000)
})

test('the observed block time shortens the interval and never lengthens it', () => {
  const { pace, run } = setup()
  expect(pace.probeIntervalMs(false)).toBe(1_000)
  run(400)
  expect(pace.blockMs()).toBeCloseTo(400, -1)
  expect(pace.probeIntervalMs(false)).toBe(250)
  const slow = setup()
  slow.run(3_000)
  expect(slow.pace.probeIntervalMs(false)).toBe(500)
  const quiet = setup()
  quiet.run(30_000)
  expect(quiet.pace.probeIntervalMs(false)).toBe(1_000)
})

test('a chain that is faster than usual is probed as fast as its blocks', () => {
  const { pace, run } = setup()
  pace.know(12_000)
  expect(pace.probeIntervalMs(false)).toBe(2_000)
  run(1_000)
  expect(pace.probeIntervalMs(false)).toBe(250)
})
