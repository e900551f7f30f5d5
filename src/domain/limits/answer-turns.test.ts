import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createAnswerTurns } from './answer-turns.ts'
import { createLoopPace, largeAnswerBytes } from './loop-pace.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** An organization whose calls have large answers after some time, beside another one. */
const open = (bytes: number, answerMs = 0) => {
  const pace = createLoopPace(() => Date.now())
  const turns = createAnswerTurns({ pace, now: () => Date.now() })
  const begin = Date.now()
  const ran: number[] = []
  let refused = 0
  const note = () => {
    pace.note('quiet')
    pace.note('noisy')
  }
  const noting = setInterval(note, 1_000)
  const run = (answered: () => void) => {
    ran.push(Date.now() - begin)
    const answer = () => {
      pace.answer('noisy', bytes, true)
      answered()
    }
    if (answerMs === 0) answer()
    else setTimeout(answer, answerMs)
  }
  const call = (waitingBytes = 100) => {
    note()
    const refuse = () => refused++
    if (turns.mustWait('noisy')) turns.wait('noisy', { bytes: waitingBytes, run, refuse })
    else run(() => {})
  }
  return { call, turns, ran, refused: () => refused, leave: () => clearInterval(noting) }
}

it('calls that come at once are run one by one, when the answer before is made up for', async () => {
  // 2 ms of work, of which an organization has 5 % of the time.
  const { call, ran, turns } = open(1_048_576)
  for (let count = 0; count < 4; count++) call()
  expect(ran).toEqual([0])
  await vi.advanceTimersByTimeAsync(1_000)
  expect(ran).toEqual([0, 40, 80, 120])
  expect([turns.mustWait('noisy'), turns.mustWait('quiet')]).toEqual([false, false])
})

it('at most four calls out of a line are unanswered at a time', async () => {
  const { call, ran } = open(1_048_576, 10)
  call()
  await vi.advanceTimersByTimeAsync(10)
  for (let count = 0; count < 10; count++) call()
  await vi.advanceTimersByTimeAsync(41)
  expect(ran.length).toBe(1 + 4)
  // Four answers are to be made up for then.
  await vi.advanceTimersByTimeAsync(160)
  expect(ran.length).toBe(1 + 4)
  await vi.advanceTimersByTimeAsync(20)
  expect(ran.length).toBe(1 + 8)
})

it('a call that takes long keeps its place for half a second', async () => {
  const { call, ran, turns, refused } = open(1_048_576)
  call()
  const slow: number[] = []
  const begin = Date.now()
  const run = () => void slow.push(Date.now() - begin)
  for (let count = 0; count < 6; count++)
    turns.wait('noisy', { bytes: 1, run, refuse: () => expect.fail('it was refused') })
  await vi.advanceTimersByTimeAsync(539)
  expect(slow).toEqual([40, 40, 40, 40])
  await vi.advanceTimersByTimeAsync(20)
  expect(slow).toHaveLength(6)
  expect([ran.length, refused()]).toEqual([1, 0])
})

it('calls with small answers do not wait', () => {
  const { call, ran } = open(largeAnswerBytes)
  for (let count = 0; count < 100; count++) call()
  expect(ran).toHaveLength(100)
})

it('a call is refused after three seconds, and at once beside too many or too large ones', async () => {
  // One in 2.56 seconds.
  const { call, ran, refused } = open(64 * 1_048_576)
  call()
  call(8_388_609)
  expect([ran.length, refused()]).toEqual([1, 1])
  for (let count = 0; count < 300; count++) call()
  expect([ran.length, refused()]).toEqual([1, 1 + 300 - 256])
  await vi.advanceTimersByTimeAsync(2_600)
  expect(ran).toEqual([0, 2_560])
  await vi.advanceTimersByTimeAsync(500)
  expect([ran.length, refused()]).toEqual([2, 300])
  await vi.advanceTimersByTimeAsync(3_000)
  call()
  expect(ran).toHaveLength(3)
})

it('an organization waits three seconds at most, and not when the others have left', async () => {
  const { call, ran, leave } = open(1_024 * 1_048_576)
  call()
  call()
  await vi.advanceTimersByTimeAsync(2_990)
  expect(ran).toHaveLength(1)
  await vi.advanceTimersByTimeAsync(20)
  expect(ran).toHaveLength(2)
  leave()
  await vi.advanceTimersByTimeAsync(2_100)
  call()
  expect(ran).toHaveLength(2)
})
