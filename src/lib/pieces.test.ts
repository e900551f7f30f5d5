import { setImmediate as turn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { inPieces } from './pieces.ts'

/** Work of so many pieces, each of which takes so long. */
const createWork = (count: number, ms: number) => {
  const state = { done: 0, time: 0 }
  function* work() {
    for (; state.done < count; state.done++) {
      state.time += ms
      yield
    }
  }
  return { state, start: () => inPieces(work(), () => state.time) }
}

test('short work is done at once', () => {
  const { state, start } = createWork(10, 0.1)
  expect(start()).toBeUndefined()
  expect(state.done).toBe(10)
})

test('long work is done for two milliseconds in each turn', async () => {
  const { state, start } = createWork(10, 0.5)
  const whole = start()
  const seen = [state.done]
  for (let turns = 2; turns > 0; turns--) {
    await turn()
    seen.push(state.done)
  }
  expect(seen).toEqual([3, 7, 10])
  await whole
})

test('what fails in a later turn is reported', async () => {
  let time = 0
  function* work() {
    for (; time < 5; time++) yield
    throw new Error('failed')
  }
  await expect(inPieces(work(), () => time)).rejects.toThrow('failed')
})
