import { expect, test } from 'vitest'
import { keepForHead } from './sending.ts'

const { signal } = new AbortController()

const createBench = () => {
  const bench = { hash: 'a' as string | undefined, now: 0, asked: 0 }
  const head = () =>
    bench.hash === undefined
      ? undefined
      : { number: 1, hash: bench.hash, parent_hash: '', timestamp: 0 }
  const ask = async () => ++bench.asked
  return { bench, read: keepForHead({ head }, ask, () => bench.now) }
}

test('what all callers get is asked for once per head', async () => {
  const { bench, read } = createBench()
  expect([await read(signal), await read(signal)]).toEqual([1, 1])
  bench.hash = 'b'
  expect(await read(signal)).toBe(2)
  expect(await read(signal)).toBe(2)
})

test('it is asked for again after a second, and always without a head', async () => {
  const { bench, read } = createBench()
  await read(signal)
  bench.now = 1_000
  expect(await read(signal)).toBe(2)
  bench.hash = undefined
  expect([await read(signal), await read(signal)]).toEqual([3, 4])
})

test('an answer during which the head has changed is not kept', async () => {
  const { bench } = createBench()
  const read = keepForHead(
    { head: () => ({ number: 1, hash: bench.hash!, parent_hash: '', timestamp: 0 }) },
    async () => {
      const value = ++bench.asked
      if (value === 1) bench.hash = 'b'
      return value
    },
    () => 0,
  )
  expect([await read(signal), await read(signal), await read(signal)]).toEqual([1, 2, 2])
})
