import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createAnswersInTurn } from './answers-in-turn.ts'
import { createLoopPace } from './loop-pace.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const mebibyte = 'a'.repeat(1_048_576)

/** Calls of an organization beside another one. */
const open = () => {
  const pace = createLoopPace(() => performance.now())
  const turns = createAnswersInTurn(pace)
  const begun: number[] = []
  const outcomes: string[] = []
  const begin = performance.now()
  const call = (
    answer: string,
    organization_id = 'noisy',
    signal = new AbortController().signal,
  ) => {
    pace.note('quiet')
    pace.note('noisy')
    const work = async () => {
      begun.push(Math.round(performance.now() - begin))
      return answer
    }
    const done = turns.run({ organization_id, bytes: 100, signal }, work)
    return done.then(
      () => void outcomes.push('answered'),
      (error: Error & { reason?: string }) => void outcomes.push(error.reason ?? error.message),
    )
  }
  return { call, begun, outcomes }
}

it('calls wait for the large answers of their organization, and not for those of others', async () => {
  const { call, begun, outcomes } = open()
  // 8 ms of work, of which an organization has 5 % of the time.
  await call(mebibyte)
  const waiting = [call(mebibyte), call(mebibyte)]
  await call('small', 'quiet')
  expect(begun).toEqual([0, 0])
  await vi.advanceTimersByTimeAsync(161)
  expect(begun).toHaveLength(4)
  await Promise.all(waiting)
  expect(outcomes).toHaveLength(4)
  // Both were let go at once: what they cost shows with their answers.
  const last = call('small')
  await vi.advanceTimersByTimeAsync(300)
  expect(begun).toHaveLength(4)
  await vi.advanceTimersByTimeAsync(25)
  await last
  expect(begun).toHaveLength(5)
})

it('calls with small answers do not wait', async () => {
  const { call, begun } = open()
  await Promise.all(Array.from({ length: 100 }, () => call('small')))
  expect(begun).toHaveLength(100)
})

it('a call that cannot wait is refused with the time after which it may come again', async () => {
  const { call, begun, outcomes } = open()
  await call(mebibyte.repeat(10))
  const many = Array.from({ length: 300 }, () => call('small'))
  await vi.advanceTimersByTimeAsync(1)
  expect(outcomes).toEqual(['answered', ...Array.from({ length: 44 }, () => 'RATE_LIMITED')])
  await vi.advanceTimersByTimeAsync(2_000)
  await Promise.all(many)
  expect(begun).toHaveLength(1 + 256)
})

it('the work of a client that left while its call waited is not begun', async () => {
  const { call, begun, outcomes } = open()
  await call(mebibyte)
  const client = new AbortController()
  const left = call('small', 'noisy', client.signal)
  client.abort(new Error('the caller hung up'))
  await vi.advanceTimersByTimeAsync(200)
  await left
  expect(begun).toHaveLength(1)
  expect(outcomes).toEqual(['answered', 'the caller hung up'])
})
