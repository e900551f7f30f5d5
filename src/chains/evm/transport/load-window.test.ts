import { expect, test } from 'vitest'
import { createLoadWindow } from './load-window.ts'

/** A node that answers a number of calls per second, and gets as many at once as the window says. */
const work = (window: ReturnType<typeof createLoadWindow>, perSecond: number, seconds: number) => {
  let now = 0
  let longest = 0
  let answered = 0
  while (now < seconds * 1_000) {
    const startedAt = now
    const calls = window.size()
    now += Math.max(5, (calls * 1_000) / perSecond)
    answered += calls
    if (startedAt > 10_000) longest = Math.max(longest, now - startedAt)
    window.add({ calls, startedAt, now, inFlight: calls })
  }
  return { longest, answered }
}

test('a quick node soon gets all there is', () => {
  const window = createLoadWindow()
  work(window, 50_000, 1)
  expect(window.size()).toBeGreaterThan(1_600)
})

test.each([100, 300, 1_000])(
  'a node of %i calls per second is never late, and never idle',
  (perSecond) => {
    const { longest, answered } = work(createLoadWindow(), perSecond, 120)
    expect(longest).toBeLessThan(1_500)
    expect(answered).toBeGreaterThan(perSecond * 115)
  },
)

test('exchanges that were under way together halve it once', () => {
  const window = createLoadWindow()
  const add = (calls: number, startedAt: number, now: number) =>
    window.add({ calls, startedAt, now, inFlight: 200 })
  for (let index = 0; index < 10; index++) add(20, 1_000 + index, 2_500 + index)
  expect(window.size()).toBe(100)
  add(20, 2_600, 4_000)
  expect(window.size()).toBe(50)
})

test('it stays open for a trial however slow a node is', () => {
  const window = createLoadWindow()
  for (let turn = 0; turn < 20; turn++) {
    const startedAt = turn * 10_000
    window.add({ calls: 1, startedAt, now: startedAt + 5_000, inFlight: 1 })
  }
  expect(window.size()).toBe(16)
})

test('a node that is asked for little is not trusted with more', () => {
  const window = createLoadWindow()
  for (let turn = 0; turn < 1_000; turn++)
    window.add({ calls: 10, startedAt: turn, now: turn + 1, inFlight: 10 })
  expect(window.size()).toBe(200)
})
