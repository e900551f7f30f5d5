import { expect, it } from 'vitest'
import { createPendingQueue } from './queue.ts'

const hashesOf = (taken: [string, unknown][]) => taken.map(([hash]) => hash)

it('gives each hash once, though every node announces it', () => {
  const queue = createPendingQueue()
  for (const hash of ['a', 'b', 'a']) queue.add(hash, 1_000)
  expect(hashesOf(queue.take(1_000, 10))).toEqual(['a', 'b'])
  queue.add('a', 1_500)
  expect(queue.size()).toBe(0)
  // Much later it is news again: it may have come back.
  queue.add('a', 20_000)
  expect(hashesOf(queue.take(20_000, 10))).toEqual(['a'])
})

it('tries again after ever longer pauses, with the first time, and gives up', () => {
  const queue = createPendingQueue()
  queue.add('a', 0)
  let now = 0
  for (const pauseMs of [250, 500, 1_000]) {
    const [[hash, entry] = []] = queue.take(now, 1)
    expect([hash, entry?.time]).toEqual(['a', 0])
    expect(queue.retry('a', entry!, now)).toBe(true)
    now += pauseMs
    expect(queue.take(now - 1, 1)).toEqual([])
  }
  const [[, last] = []] = queue.take(now, 1)
  expect(queue.retry('a', last!, now)).toBe(false)
  expect(queue.size()).toBe(0)
})

it('is bounded, and reports what it omits', () => {
  const queue = createPendingQueue({ maxSize: 2 })
  for (const hash of ['a', 'b', 'c', 'd']) queue.add(hash, 0)
  expect(queue.size()).toBe(2)
  expect([queue.takeLost(), queue.takeLost()]).toEqual([2, 0])
  expect(hashesOf(queue.take(0, 1))).toEqual(['a'])
})

it('remembers a bounded number of those that it has given', () => {
  const queue = createPendingQueue({ maxRecent: 2 })
  for (const hash of ['a', 'b', 'c']) queue.add(hash, 0)
  queue.take(0, 10)
  for (const hash of ['a', 'c']) queue.add(hash, 1)
  expect(hashesOf(queue.take(1, 10))).toEqual(['a'])
})
