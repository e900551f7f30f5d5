import { execFile } from 'node:child_process'
import { setImmediate as yieldTurn } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { startRedis } from '../../../test/helpers/redis.ts'
import { systemClock } from '../../lib/clock.ts'
import { silentLog } from '../../lib/log.ts'
import { connectRedis } from '../../storage/redis/redis.ts'
import type { RateLimits } from './decision.ts'
import { createLimiter, type Limiter, type LimiterOptions } from './limiter.ts'
import { createLimitScript } from './shared-windows.ts'
import { createFakeStore } from './testing/fakes.ts'

const HAMMER = fileURLToPath(new URL('testing/hammer.ts', import.meta.url))

const server = await startRedis()
afterAll(() => server?.stop())

const unlimited: RateLimits = {
  per_second_limit: -1,
  per_hour_limit: -1,
  per_day_limit: -1,
  per_month_limit: -1,
}
const perMonth = (per_month_limit: number): RateLimits => ({ ...unlimited, per_month_limit })

const open = async (url: string, options: Partial<LimiterOptions> = {}) => {
  const redis = await connectRedis({ url, log: silentLog })
  const limiter = createLimiter({
    clock: systemClock,
    log: silentLog,
    redis: createLimitScript(redis),
    replicas: 2,
    ...options,
  })
  return {
    ...limiter,
    stop: async () => {
      await limiter.stop()
      await redis.stop()
    },
  }
}

type Call = { allowed: boolean; began: number; ended: number }

const call = async (limiter: Limiter, chain: string, limits: RateLimits): Promise<Call> => {
  const began = performance.now()
  const { allowed } = await limiter.take({ organization_id: 'o', chain, limits })
  return { allowed, began, ended: performance.now() }
}

const callFor = async (ms: number, limiter: Limiter, chain: string, limits: RateLimits) => {
  const calls: Call[] = []
  const end = performance.now() + ms
  const caller = async () => {
    while (performance.now() < end) {
      calls.push(await call(limiter, chain, limits))
      // Without Redis nothing waits for the network, and other tasks would get no turn.
      await yieldTurn()
    }
  }
  await Promise.all(Array.from({ length: 10 }, caller))
  return calls
}

const countAdmitted = (calls: readonly Call[]): number =>
  calls.filter(({ allowed }) => allowed).length

/** The server decided somewhere between begin and end; what surely lies in one second counts. */
const mostInASecond = (admitted: readonly Call[]): number => {
  const within = admitted.map(
    ({ began }) =>
      admitted.filter((other) => other.began >= began && other.ended < began + 999).length,
  )
  return Math.max(...within)
}

const isBack = (limiter: Limiter) =>
  vi.waitFor(
    async () => {
      await limiter.take({ organization_id: 'probe', chain: 'c', limits: unlimited })
      expect(limiter.status().mode).toBe('redis')
    },
    { timeout: 30_000, interval: 50 },
  )

describe.skipIf(server === undefined)('limits shared through Redis', () => {
  test('two connections never admit more than the limit, in any second or month', async () => {
    const limiters = [await open(server!.url), await open(server!.url)]
    const limits = { ...perMonth(120), per_second_limit: 50 }
    const calls = (
      await Promise.all(limiters.map((limiter) => callFor(3_200, limiter, 'two', limits)))
    ).flat()
    const admitted = calls.filter(({ allowed }) => allowed)
    expect(admitted.length).toBe(120)
    expect(limiters.map((limiter) => limiter.status().mode)).toEqual(['redis', 'redis'])
    expect(mostInASecond(admitted)).toBeLessThanOrEqual(50)
    await Promise.all(limiters.map((limiter) => limiter.stop()))
  })

  test('one of two that has lost Redis adds half of the limit, and never more', async () => {
    const lost = { ready: () => false, run: () => Promise.reject(new Error('lost')) }
    const limiters = [await open(server!.url), await open(server!.url, { redis: lost })]
    const limits = { ...unlimited, per_second_limit: 50 }
    const calls = await Promise.all(limiters.map((one) => callFor(2_500, one, 'lost', limits)))
    const most = mostInASecond(calls.flat().filter(({ allowed }) => allowed))
    // docs/decisions/limits.md: limit × (1 + lost / replicas).
    expect(most).toBeLessThanOrEqual(75)
    // Without a loss it would be the limit: the bound is the smallest one.
    expect(most).toBeGreaterThan(50)
    await Promise.all(limiters.map((limiter) => limiter.stop()))
  })

  test('two processes with wrong clocks never admit more than the limit', async () => {
    const hammer = async (skew: number) => {
      const args = [HAMMER, server!.url, '1000', '2000', String(skew)]
      const { stdout } = await promisify(execFile)(process.execPath, args)
      return JSON.parse(stdout) as { admitted: number; mode: string }
    }
    const results = await Promise.all([hammer(-40 * 86_400_000), hammer(600_000)])
    expect(results.map(({ mode }) => mode)).toEqual(['redis', 'redis'])
    expect(results.reduce((sum, { admitted }) => sum + admitted, 0)).toBe(1_000)
  })

  test('a paused Redis delays a call by a bounded time, then none, and is used again', async () => {
    const limiter = await open(server!.url)
    await isBack(limiter)
    server!.pause()
    const first = await call(limiter, 'paused', perMonth(1_000))
    expect(first.ended - first.began).toBeLessThan(1_000)
    const rest = await callFor(500, limiter, 'paused', perMonth(1_000))
    expect(countAdmitted([first, ...rest])).toBe(500)
    expect(limiter.status().mode).toBe('redis_away')
    server!.resume()
    await isBack(limiter)
    await limiter.stop()
  })
})

const ownRedis = async (options: { persistent?: boolean } = {}) => {
  const own = (await startRedis(options))!
  onTestFinished(() => own.stop())
  return own
}

describe.skipIf(server === undefined)('when Redis dies', () => {
  test('limits are divided, and counts come back to a Redis that lost them', async () => {
    const own = await ownRedis()
    const store = createFakeStore()
    const [a, b] = [await open(own.url, { store }), await open(own.url, { store })]
    const limits = perMonth(1_000)
    const take = async (limiter: Limiter, calls: number) => {
      const made = []
      for (let index = 0; index < calls; index += 1) made.push(await call(limiter, 'c', limits))
      return countAdmitted(made)
    }
    expect((await take(a, 200)) + (await take(b, 200)) + (await take(a, 1))).toBe(401)
    await own.kill()
    // It may take its half of the 600 that it knows to be left, and no more.
    expect(await take(b, 500)).toBe(300)
    await b.flush()
    await a.flush()
    // The other one has learnt of it through the store: 299 are left, and half of them are its own.
    expect(await take(a, 500)).toBe(149)
    await a.flush()
    await own.start()
    await Promise.all([isBack(a), isBack(b)])
    expect((await take(a, 100)) + (await take(b, 1_000))).toBe(150)
    await Promise.all([a.stop(), b.stop()])
  })

  test('kills and restarts in the middle of calls refuse no caller for long and never throw', async () => {
    const own = await ownRedis({ persistent: true })
    const store = createFakeStore()
    const [a, b] = [await open(own.url, { store }), await open(own.url, { store })]
    const limits = { ...perMonth(1_800), per_second_limit: 500 }
    const running = Promise.all([a, b].map((limiter) => callFor(6_000, limiter, 'c', limits)))
    for (let round = 0; round < 4; round += 1) {
      await systemClock.sleep(700)
      await own.kill()
      await systemClock.sleep(300)
      await own.start()
    }
    const calls = (await running).flat()
    expect(calls.every(({ began, ended }) => ended - began < 5_000)).toBe(true)
    // What the other one admits while Redis is unreachable is known one flush later.
    expect(countAdmitted(calls)).toBeLessThan(1_800 + 500)
    expect(countAdmitted(calls)).toBeGreaterThan(900)
    await Promise.all([isBack(a), isBack(b)])
    await Promise.all([a.stop(), b.stop()])
  })

  test('a Redis that is not there at the start is used once it is', async () => {
    const own = await ownRedis()
    await own.kill()
    const limiter = await open(own.url)
    expect((await call(limiter, 'c', perMonth(10))).allowed).toBe(true)
    expect(limiter.status().mode).toBe('redis_away')
    await own.start()
    await isBack(limiter)
    const { remaining } = await limiter.take({
      organization_id: 'o',
      chain: 'c',
      limits: perMonth(10),
    })
    expect(remaining).toBe(8)
    await limiter.stop()
  })
})
