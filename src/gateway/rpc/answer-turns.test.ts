import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createLoopPace, largeAnswerBytes } from '../../domain/limits/loop-pace.ts'
import { createAnswerTurns } from './answer-turns.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** An organization whose calls have large answers, beside another one. */
const open = (bytes: number) => {
  const pace = createLoopPace(() => Date.now())
  const turns = createAnswerTurns({ pace, now: () => Date.now() })
  const begin = Date.now()
  const ran: number[] = []
  let refused = 0
  const note = () => {
    pace.note('quiet')
    pace.note('noisy')
  }
  setInterval(note, 1_000)
  const call = () => {
    note()
    const run = () => {
      ran.push(Date.now() - begin)
      pace.answer('noisy', bytes, true)
    }
    if (turns.mustWait('noisy')) turns.wait('noisy', { run, refuse: () => refused++ })
    else run()
  }
  return { call, turns, ran, refused: () => refused }
}

it('calls that come at once are run one by one, as their answers have their time', async () => {
  // 2 ms of work, of which an organization has 5 % of the time.
  const { call, ran, turns } = open(1_048_576)
  for (let count = 0; count < 4; count++) call()
  expect(ran).toEqual([0])
  await vi.advanceTimersByTimeAsync(1_000)
  expect(ran).toEqual([0, 40, 80, 120])
  expect([turns.mustWait('noisy'), turns.mustWait('quiet')]).toEqual([false, false])
})

it('calls with small answers do not wait', () => {
  const { call, ran } = open(largeAnswerBytes)
  for (let count = 0; count < 100; count++) call()
  expect(ran).toHaveLength(100)
})

it('a call is refused after three seconds, and at once beside too many', async () => {
  // One in 2.56 seconds.
  const { call, ran, refused } = open(64 * 1_048_576)
  for (let count = 0; count < 300; count++) call()
  expect([ran.length, refused()]).toEqual([1, 300 - 1 - 256])
  await vi.advanceTimersByTimeAsync(2_600)
  expect(ran).toEqual([0, 2_560])
  await vi.advanceTimersByTimeAsync(500)
  expect([ran.length, refused()]).toEqual([2, 298])
  await vi.advanceTimersByTimeAsync(3_000)
  call()
  expect(ran).toHaveLength(3)
})
