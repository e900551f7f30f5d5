import { expect, test } from 'vitest'
import { silentLog } from '../../lib/log.ts'
import { type Decision, type RateLimits, SHIPPED_LIMITS } from './decision.ts'
import { createLimiter, type Limiter, type LimiterOptions } from './limiter.ts'
import { createFakeStore, createManualClock, type ManualClock } from './testing/fakes.ts'

const NOON = Date.parse('2026-11-15T12:00:00Z')
const HOUR = { period: 'hour', period_start: NOON } as const
const KEY = { organization_id: 'o', chain: 'c' }

const unlimited: RateLimits = {
  per_second_limit: -1,
  per_hour_limit: -1,
  per_day_limit: -1,
  per_month_limit: -1,
}
const perHour = (per_hour_limit: number): RateLimits => ({ ...unlimited, per_hour_limit })

const start = (options: Partial<LimiterOptions> = {}) => {
  const clock = (options.clock as ManualClock) ?? createManualClock(NOON)
  const store = createFakeStore()
  const limiter = createLimiter({ log: silentLog, store, ...options, clock })
  return { clock, store, limiter }
}

const admit = async (limiter: Limiter, limits: RateLimits, calls: number): Promise<number> => {
  let admitted = 0
  for (let call = 0; call < calls; call += 1)
    if ((await limiter.take({ ...KEY, limits })).allowed) admitted += 1
  return admitted
}

test('the first call waits for the stored usage, the next ones are answered at once', async () => {
  const { limiter } = start()
  const [first, second] = [1, 2].map(() => limiter.take({ ...KEY, limits: SHIPPED_LIMITS }))
  expect(first).toBeInstanceOf(Promise)
  expect((await first)!.remaining).toBe(99)
  expect((await second)!.remaining).toBe(98)
  const third = limiter.take({ ...KEY, limits: SHIPPED_LIMITS }) as Decision
  expect(third.remaining).toBe(97)
})

test('without a store every call is answered at once', () => {
  const limiter = createLimiter({ clock: createManualClock(NOON), log: silentLog })
  expect(limiter.take({ ...KEY, limits: SHIPPED_LIMITS })).toMatchObject({ allowed: true })
})

test('no double burst at the border of a second', async () => {
  const { clock, limiter } = start({ clock: createManualClock(NOON + 999) })
  const limits = { ...unlimited, per_second_limit: 10 }
  expect(await admit(limiter, limits, 20)).toBe(10)
  clock.step(1)
  expect(await admit(limiter, limits, 20)).toBe(0)
  clock.step(999)
  expect(await admit(limiter, limits, 20)).toBe(10)
})

test('an even stream at exactly the limit is never refused', async () => {
  const { clock, limiter } = start()
  const limits = { ...unlimited, per_second_limit: 100 }
  for (let call = 0; call < 1_000; call += 1) {
    expect(await admit(limiter, limits, 1)).toBe(1)
    clock.step(10)
  }
})

test('a batch is admitted completely or not at all', async () => {
  const { limiter } = start()
  const limits = { ...perHour(10), per_second_limit: 100 }
  expect(await limiter.take({ ...KEY, limits, cost: 8 })).toMatchObject({ allowed: true })
  expect(await limiter.take({ ...KEY, limits, cost: 3 })).toMatchObject({
    allowed: false,
    window: 'hour',
    remaining: 2,
  })
  expect(await limiter.take({ ...KEY, limits, cost: 2 })).toMatchObject({ allowed: true })
})

test('a refused call is counted in no window', async () => {
  const { limiter } = start()
  const limits = { ...unlimited, per_second_limit: 5, per_day_limit: 2 }
  expect(await admit(limiter, limits, 50)).toBe(2)
  const look = await limiter.take({ ...KEY, limits, cost: 0 })
  expect(look.windows.map((state) => state.remaining)).toEqual([3, 0])
})

test('-1 is unlimited and 0 is blocked', async () => {
  const { limiter } = start()
  expect(await admit(limiter, unlimited, 500)).toBe(500)
  for (const name of Object.keys(unlimited))
    expect(await admit(limiter, { ...unlimited, [name]: 0 }, 3)).toBe(0)
})

test('organizations and chains do not share windows', async () => {
  const { limiter } = start()
  const limits = perHour(1)
  for (const organization_id of ['a', 'b'])
    for (const chain of ['c', 't'])
      expect(await limiter.take({ organization_id, chain, limits })).toMatchObject({
        allowed: true,
      })
  expect((await limiter.take({ organization_id: 'a', chain: 't', limits })).allowed).toBe(false)
})

test('a changed limit applies to calls already counted', async () => {
  const { limiter } = start()
  expect(await admit(limiter, perHour(10), 8)).toBe(8)
  expect(await admit(limiter, perHour(5), 1)).toBe(0)
  expect(await admit(limiter, perHour(9), 5)).toBe(1)
})

test('a clock that is set back opens no window that is spent', async () => {
  const { clock, limiter } = start()
  const limits = { ...perHour(5), per_second_limit: 5 }
  expect(await admit(limiter, limits, 5)).toBe(5)
  for (const back of [1, 1_000, 3_600_000, 40 * 86_400_000]) {
    clock.set(NOON - back)
    expect(await admit(limiter, limits, 1)).toBe(0)
  }
  clock.set(NOON + 3_600_000)
  expect(await admit(limiter, limits, 9)).toBe(5)
})

test('the last second still passes after the clock was set back', async () => {
  const { clock, limiter } = start()
  const limits = { ...unlimited, per_second_limit: 5 }
  expect(await admit(limiter, limits, 9)).toBe(5)
  clock.set(NOON - 3_600_000)
  expect(await admit(limiter, limits, 9)).toBe(0)
  clock.step(1_000)
  expect(await admit(limiter, limits, 9)).toBe(5)
})

test('a restart keeps the hour, day and month', async () => {
  const { clock, store, limiter } = start()
  expect(await admit(limiter, perHour(10), 7)).toBe(7)
  await limiter.stop()
  const next = createLimiter({ clock, store, log: silentLog })
  expect(await admit(next, perHour(10), 7)).toBe(3)
  clock.step(3_600_000)
  expect(await admit(next, perHour(10), 20)).toBe(10)
})

test('a clock that had jumped ahead leaves no windows of the future behind', async () => {
  const { clock, store, limiter } = start()
  expect(await admit(limiter, perHour(10), 4)).toBe(4)
  for (const ahead of [2 * 3_600_000, 40 * 86_400_000]) {
    clock.step(ahead)
    expect(await admit(limiter, perHour(10), 20)).toBe(10)
    clock.step(-ahead)
    // What was spent before the jump is still spent, and nothing else.
    expect(await admit(limiter, perHour(10), 1)).toBe(1)
  }
  const decision = (await limiter.take({
    ...{ organization_id: 'o', chain: 'c', limits: perHour(10), cost: 9 },
  })) as Decision
  expect(decision).toMatchObject({ allowed: false, remaining: 4, window: 'hour' })
  expect(decision.retry_after_ms).toBeLessThanOrEqual(3_600_000)
  await limiter.stop()
  const next = createLimiter({ clock, store, log: silentLog })
  expect(await admit(next, perHour(10), 9)).toBe(4)
})

test('a clock that is set back a little opens no budget that is spent', async () => {
  const { clock, limiter } = start()
  expect(await admit(limiter, perHour(10), 10)).toBe(10)
  clock.step(-200_000)
  expect(await admit(limiter, perHour(10), 5)).toBe(0)
})

test('a crash loses at most the counts of one interval', async () => {
  const { clock, store, limiter } = start()
  await admit(limiter, perHour(100), 30)
  clock.step(1_000)
  await expect.poll(() => store.used({ ...KEY, ...HOUR })).toBe(30)
  await admit(limiter, perHour(100), 12)
  const next = createLimiter({ clock, store, log: silentLog })
  expect(await admit(next, perHour(100), 200)).toBe(70)
})

test('two processes on one store agree after one interval', async () => {
  const { clock, store, limiter } = start()
  const other = createLimiter({ clock, store, log: silentLog })
  expect(await admit(limiter, perHour(100), 40)).toBe(40)
  expect(await admit(other, perHour(100), 40)).toBe(40)
  await limiter.flush()
  await other.flush()
  expect(await admit(other, perHour(100), 40)).toBe(20)
  await other.flush()
  await limiter.take({ ...KEY, limits: unlimited })
  await limiter.flush()
  expect(await admit(limiter, perHour(100), 40)).toBe(0)
})

test('an invalid cost is a fault of the caller', () => {
  const { limiter } = start()
  for (const cost of [-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY])
    expect(() => limiter.take({ ...KEY, limits: unlimited, cost })).toThrow(RangeError)
})

test('a store that does not answer in time is not waited for, and caught up with', async () => {
  const { clock, store, limiter } = start()
  await admit(limiter, perHour(10), 6)
  await limiter.stop()
  const next = createLimiter({
    clock,
    store: { ...store, load: () => new Promise(() => {}) },
    log: silentLog,
  })
  const waiting = next.take({ ...KEY, limits: perHour(10) })
  clock.step(1_000)
  expect(await waiting).toMatchObject({ allowed: true, remaining: 9 })
  await next.flush()
  expect(await admit(next, perHour(10), 9)).toBe(3)
})
