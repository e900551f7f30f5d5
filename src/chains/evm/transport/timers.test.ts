import { expect, test } from 'vitest'
import { createFakeClock } from '../testing/fake-clock.ts'
import { createTimers } from './timers.ts'

test('fire at their time, not before, in order', async () => {
  const clock = createFakeClock()
  const timers = createTimers(clock)
  const fired: [number, number][] = []
  const start = clock.now()
  for (const ms of [1_000, 10, 7_000, 100, 0, 5_119, 5_120, 5_121])
    timers.after(ms, () => fired.push([ms, clock.now() - start]))
  await clock.advance(10_000)
  expect(fired.map(([ms]) => ms)).toEqual([0, 10, 100, 1_000, 5_119, 5_120, 5_121, 7_000])
  for (const [ms, at] of fired) {
    expect(at).toBeGreaterThanOrEqual(ms)
    expect(at).toBeLessThanOrEqual(ms + 15)
  }
})

test('a cancelled one does not fire, not even when its neighbour of the same moment cancels it', async () => {
  const clock = createFakeClock()
  const timers = createTimers(clock)
  const fired: string[] = []
  const first = timers.after(50, () => {
    fired.push('first')
    timers.cancel(second)
  })
  const second = timers.after(50, () => fired.push('second'))
  timers.after(50, () => fired.push('third'))
  await clock.advance(100)
  timers.cancel(first)
  expect(fired).toEqual(['first', 'third'])
})

test('start again after a rest, also from inside one that fires', async () => {
  const clock = createFakeClock()
  const timers = createTimers(clock)
  let count = 0
  const again = () => {
    if (++count < 3) timers.after(20, again)
  }
  timers.after(20, again)
  await clock.advance(500)
  expect(count).toBe(3)
  timers.after(20, () => count++)
  await clock.advance(500)
  expect(count).toBe(4)
})

test('nothing fires after the stop', async () => {
  const clock = createFakeClock()
  const timers = createTimers(clock)
  let fired = false
  timers.after(20, () => {
    fired = true
  })
  timers.stop()
  await clock.advance(500)
  expect(fired).toBe(false)
})
