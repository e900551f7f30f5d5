import { expect, test } from 'vitest'
import { createFakeClock } from '../chains/evm/testing/fake-clock.ts'
import { createRest } from './rest.ts'

const minute = 60_000

const setup = (afterMs = 10 * minute) => {
  const clock = createFakeClock()
  const events: string[] = []
  let isBusy = false
  const woken = Promise.withResolvers<void>()
  const rest = createRest({
    clock,
    afterMs,
    isBusy: () => isBusy,
    wake: () => {
      events.push('wake')
      return woken.promise
    },
    sleep: () => events.push('sleep'),
  })
  return { clock, events, rest, woken, setBusy: (value: boolean) => (isBusy = value) }
}

test('a network begins asleep, and its first use waits until it is awake', async () => {
  const { events, rest, woken } = setup()
  expect([rest.isAwake(), events]).toEqual([false, []])
  const first = rest.use()
  expect(first).toBeDefined()
  expect(rest.use()).toBe(first)
  woken.resolve()
  await first
  expect(rest.use()).toBeUndefined()
  expect([rest.isAwake(), events]).toEqual([true, ['wake']])
})

test('it sleeps after ten minutes without use, and the next use wakes it', async () => {
  const { clock, events, rest, woken } = setup()
  woken.resolve()
  await rest.use()
  for (let round = 0; round < 5; round++) {
    await clock.advance(9 * minute)
    rest.use()
  }
  await clock.advance(10 * minute)
  expect(events).toEqual(['wake'])
  await clock.advance(2 * minute)
  expect([rest.isAwake(), events]).toEqual([false, ['wake', 'sleep']])
  await rest.use()
  expect([rest.isAwake(), events]).toEqual([true, ['wake', 'sleep', 'wake']])
})

test('subscriptions and holds keep it awake', async () => {
  const { clock, events, rest, woken, setBusy } = setup()
  woken.resolve()
  setBusy(true)
  const release = rest.hold()
  await clock.advance(60 * minute)
  release()
  release()
  await clock.advance(60 * minute)
  expect(events).toEqual(['wake'])
  setBusy(false)
  await clock.advance(12 * minute)
  expect(events).toEqual(['wake', 'sleep'])
})

test('with 0 it is awake from the start and never sleeps', async () => {
  const { clock, events, rest } = setup(0)
  await clock.advance(60 * minute)
  expect([rest.isAwake(), events]).toEqual([true, ['wake']])
})

test('a stopped network does not wake', () => {
  const { events, rest } = setup()
  rest.stop()
  expect(rest.use()).toBeUndefined()
  expect(events).toEqual([])
})
