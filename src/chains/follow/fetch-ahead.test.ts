import { setImmediate as turn } from 'node:timers/promises'
import { expect, it } from 'vitest'
import type { ChainBlock } from '../chain.ts'
import { createFetchAhead } from './fetch-ahead.ts'

/** A chain whose blocks arrive at the command of the test. */
const createSource = (options: { inFlight: number; maxBatch: number }) => {
  const open = new Map<number, PromiseWithResolvers<ChainBlock>>()
  const asked: number[] = []
  const ahead = createFetchAhead({
    ...options,
    fetchBlock: (number) => {
      asked.push(number)
      const request = Promise.withResolvers<ChainBlock>()
      open.set(number, request)
      return request.promise
    },
  })
  return {
    ...ahead,
    asked,
    underWay: () => [...open.keys()],
    arrive: async (...numbers: number[]) => {
      for (const number of numbers) {
        open.get(number)!.resolve({ number } as ChainBlock)
        open.delete(number)
        await turn()
      }
    },
    fail: async (number: number) => {
      open.get(number)!.reject(new Error('unreachable'))
      open.delete(number)
      await turn()
    },
  }
}

const numbersOf = (blocks: ChainBlock[]) => blocks.map(({ number }) => number)

it('fetches a whole batch while the reader stores the one before, a bounded number at once', async () => {
  const source = createSource({ inFlight: 2, maxBatch: 4 })
  const first = source.take(1, 100)
  expect(source.underWay()).toEqual([1, 2])
  await source.arrive(1)
  expect(numbersOf(await first)).toEqual([1])
  // The reader is busy: blocks 2 to 5 are the next batch.
  for (const number of [2, 3, 4, 5]) {
    expect(source.underWay().length).toBeLessThanOrEqual(2)
    await source.arrive(number)
  }
  expect(source.underWay()).toEqual([])
  expect(numbersOf(await source.take(2, 100))).toEqual([2, 3, 4, 5])
  expect(source.underWay()).toEqual([6, 7])
})

it('fetches nothing beyond the head', async () => {
  const source = createSource({ inFlight: 8, maxBatch: 4 })
  const taken = source.take(1, 3)
  await source.arrive(1, 2, 3)
  await taken
  expect(source.asked).toEqual([1, 2, 3])
})

it('gives the failure of a block to its reader and fetches it again when it is read again', async () => {
  const source = createSource({ inFlight: 3, maxBatch: 3 })
  const first = source.take(1, 9)
  await source.fail(2)
  await source.arrive(1)
  expect(numbersOf(await first)).toEqual([1])
  await expect(source.take(2, 9)).rejects.toThrow('unreachable')
  const again = source.take(2, 9)
  await source.arrive(3, 2)
  expect(numbersOf(await again)).toEqual([2, 3])
})

it('does not let blocks that were forgotten delay or enter the next batch', async () => {
  const source = createSource({ inFlight: 2, maxBatch: 4 })
  void source.take(1, 100).catch(() => {})
  source.forget()
  const taken = source.take(1, 100)
  expect(source.asked).toEqual([1, 2, 1, 2])
  await source.arrive(1)
  expect(numbersOf(await taken)).toEqual([1])
})
