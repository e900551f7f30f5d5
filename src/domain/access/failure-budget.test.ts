import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { Log } from '../../lib/log.ts'
import { silentLog } from '../../lib/log.ts'
import { createFailureBudget, type Failure } from './failure-budget.ts'

const start = (options: { burst: number; perSecond: number; maxClients?: number }) => {
  let time = 1_000_000
  const slept: number[] = []
  const clock = {
    now: () => time,
    sleep: async (ms: number) => void slept.push(ms),
  }
  const failures: Failure[] = []
  const warnings: object[] = []
  const log: Log = { ...silentLog, warn: (fields) => void warnings.push(fields) }
  const onFailure = (failure: Failure) => void failures.push(failure)
  const budget = createFailureBudget({ clock, log, onFailure, delayMs: 700, ...options })
  const pass = (ms: number) => {
    time += ms
  }
  return { budget, pass, failures, warnings, slept }
}
const takeMany = (budget: { take(client: string): boolean }, client: string, count: number) =>
  Array.from({ length: count }, () => budget.take(client)).filter(Boolean).length

it('allows a burst, and then as many attempts as time gives back', () => {
  const { budget, pass } = start({ burst: 10, perSecond: 2 })
  expect(takeMany(budget, '192.0.2.1', 50)).toBe(10)
  pass(400)
  expect(takeMany(budget, '192.0.2.1', 50)).toBe(0)
  pass(100)
  expect(takeMany(budget, '192.0.2.1', 50)).toBe(1)
  pass(3_600_000)
  expect(takeMany(budget, '192.0.2.1', 50)).toBe(10)
  pass(-3_600_000)
  expect(takeMany(budget, '192.0.2.1', 50)).toBe(0)
})

it('counts every client alone, and the addresses of one /64 together', () => {
  const { budget } = start({ burst: 10, perSecond: 1 })
  expect(takeMany(budget, '192.0.2.1', 50)).toBe(10)
  expect(takeMany(budget, '192.0.2.2', 50)).toBe(10)
  expect(takeMany(budget, '2001:db8::1', 6)).toBe(6)
  expect(takeMany(budget, '2001:db8::ffff:0:0:1', 6)).toBe(4)
  expect(takeMany(budget, '2001:db8:0:1::1', 6)).toBe(6)
})

it('takes nothing for credentials that are right, and none for a look-up that fails', async () => {
  const { budget } = start({ burst: 3, perSecond: 1 })
  for (let time = 0; time < 20; time++) {
    expect(budget.take('192.0.2.1')).toBe(true)
    budget.giveBack('192.0.2.1')
    expect(budget.take('192.0.2.1')).toBe(true)
    await expect(budget.held('192.0.2.1', Promise.reject(new Error('away')))).rejects.toThrow(
      'away',
    )
  }
  expect(takeMany(budget, '192.0.2.1', 50)).toBe(3)
})

it('reports every failure, and logs a client once until its budget is full again', () => {
  const { budget, pass, failures, warnings } = start({ burst: 2, perSecond: 1 })
  const guess = () =>
    budget.take('192.0.2.1')
      ? budget.failed('192.0.2.1', 'gateway')
      : budget.refuse('192.0.2.1', 'operation')
  for (let time = 0; time < 5; time++) guess()
  expect(failures.map(({ kind, isLimited }) => `${kind} ${isLimited}`)).toEqual([
    'gateway false',
    'gateway false',
    'operation true',
    'operation true',
    'operation true',
  ])
  pass(1_000)
  for (let time = 0; time < 5; time++) guess()
  expect(warnings).toEqual([{ client: '192.0.2.1', kind: 'operation', burst: 2 }])
  pass(10_000)
  for (let time = 0; time < 5; time++) guess()
  expect(warnings).toHaveLength(2)
})

it('forgets the client that failed longest ago when there are too many', () => {
  const { budget } = start({ burst: 1, perSecond: 1, maxClients: 2 })
  for (const last of [1, 2, 1, 3]) budget.take(`192.0.2.${last}`)
  expect([1, 3].map((last) => budget.take(`192.0.2.${last}`))).toEqual([false, false])
  expect(budget.take('192.0.2.2')).toBe(true)
})

it('never allows more than the burst and what time gave back, whatever the order', () => {
  const step = fc.record({ ms: fc.nat(2_000), client: fc.nat(2), isRight: fc.boolean() })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const { budget, pass } = start({ burst: 5, perSecond: 2 })
      const wrong = [0, 0, 0]
      let passed = 0
      for (const { ms, client, isRight } of steps) {
        pass(ms)
        passed += ms
        const name = `192.0.2.${client}`
        if (!budget.take(name)) continue
        if (isRight) budget.giveBack(name)
        else wrong[client]!++
        expect(wrong[client]!).toBeLessThanOrEqual(5 + (passed / 1_000) * 2 + 1e-6)
      }
    }),
  )
})

it('holds a refusal back, so that guesses are not tried as fast as they are sent', async () => {
  const { budget, slept } = start({ burst: 1, perSecond: 1 })
  const error = await budget.refuse('192.0.2.1', 'gateway')
  expect([error.reason, error.retryAfter, slept]).toEqual(['TOO_MANY_FAILURES', 1, [700]])
})
