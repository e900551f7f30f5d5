import fc from 'fast-check'
import { afterAll, describe, expect, test } from 'vitest'
import { startRedis } from '../../../test/helpers/redis.ts'
import { waitFor } from '../../../test/helpers/wait-for.ts'
import { systemClock } from '../../lib/clock.ts'
import { silentLog } from '../../lib/log.ts'
import { connectRedis } from '../../storage/redis/redis.ts'
import { createLimiter } from './limiter.ts'
import { LIMIT_SCRIPT, type LimitScript } from './shared-windows.ts'
import { createManualClock } from './testing/fakes.ts'

const server = await startRedis()
afterAll(() => server?.stop())

const HOUR = 3_600_000
const DAY = 24 * HOUR

const TIMED_SCRIPT = LIMIT_SCRIPT.replace("redis.call('TIME')", '{ ARGV[13], ARGV[14] }')

const limit = (max: number) =>
  fc.oneof(
    { weight: 6, arbitrary: fc.integer({ min: 1, max }) },
    { weight: 1, arbitrary: fc.constantFrom(-1, 0) },
  )

const limits = fc.record({
  per_second_limit: limit(8),
  per_hour_limit: limit(20),
  per_day_limit: limit(40),
  per_month_limit: limit(60),
})

const forward = fc.oneof(
  { weight: 8, arbitrary: fc.integer({ min: 0, max: 400 }) },
  { weight: 3, arbitrary: fc.constantFrom(999, 1_000, 1_001) },
  { weight: 2, arbitrary: fc.integer({ min: 0, max: 2 * HOUR }) },
  { weight: 1, arbitrary: fc.integer({ min: 0, max: 400 * DAY }) },
)
const step = fc.oneof(
  { weight: 5, arbitrary: forward },
  { weight: 1, arbitrary: forward.map((ms) => -ms) },
)

describe.skipIf(server === undefined)('the limit script', () => {
  test('has the time in one place', () => {
    expect(TIMED_SCRIPT).not.toBe(LIMIT_SCRIPT)
    expect(TIMED_SCRIPT).not.toContain('TIME')
  })

  test('decides like the limiter in memory, whatever the clock does', async () => {
    const redis = await connectRedis({ url: server!.url, log: silentLog, command_timeout_ms: 5e3 })
    const run = redis.script(TIMED_SCRIPT, 2)
    const scenario = fc.record({
      limits,
      start: fc.integer({ min: Date.parse('2023-12-31'), max: Date.parse('2101-01-01') }),
      calls: fc.array(fc.record({ step, cost: fc.constantFrom(0, 1, 1, 2, 5) }), {
        maxLength: 60,
      }),
    })
    let organization = 0
    await fc.assert(
      fc.asyncProperty(scenario, async ({ limits, start, calls }) => {
        organization += 1
        const organization_id = `model-${organization}`
        const clock = createManualClock(start)
        const script: LimitScript = {
          ready: () => true,
          run: (keys, args) => {
            const now = clock.now()
            return run(keys, [...args, Math.floor(now / 1_000), (now % 1_000) * 1_000])
          },
        }
        const shared = createLimiter({ clock, log: silentLog, redis: script })
        const local = createLimiter({ clock, log: silentLog })
        for (const { step, cost } of calls) {
          clock.step(step)
          const request = { organization_id, chain: 'c', limits, cost }
          const [ours, theirs] = [await shared.take(request), local.take(request)]
          expect(shared.status().mode).toBe('redis')
          // The script returns the reset time before the call, the local window the one after it.
          const states = (decision: typeof ours) => ({
            ...decision,
            windows: decision.windows.map(({ window, limit, remaining, seconds }) => [
              window,
              limit,
              remaining,
              seconds,
            ]),
          })
          expect(states(ours)).toEqual(states(await theirs))
        }
      }),
      { numRuns: 150 },
    )
    await redis.stop()
  })

  test('a strict limiter admits nothing for a second after the server has lost its data', async () => {
    const redis = await connectRedis({ url: server!.url, key_prefix: 'strict:', log: silentLog })
    const script: LimitScript = { ready: redis.ready, run: redis.script(LIMIT_SCRIPT, 2) }
    const most = { per_hour_limit: -1, per_day_limit: -1, per_month_limit: 1_000 }
    const request = {
      ...{ organization_id: 'o', chain: 'c', limits: { ...most, per_second_limit: 5 } },
    }
    const admittedBy = async (isStrict: boolean) => {
      const limiter = createLimiter({ clock: systemClock, log: silentLog, redis: script, isStrict })
      const take = async () => (await limiter.take(request)).allowed
      // A first call is not a loss.
      expect(await take()).toBe(true)
      await redis.command('flushall')
      const admitted = [await take(), await take()]
      await waitFor('calls are admitted', take)
      await redis.command('flushall')
      return admitted
    }
    expect(await admittedBy(false)).toEqual([true, true])
    expect(await admittedBy(true)).toEqual([false, false])
    await redis.stop()
  })

  test('leaves keys of one slot that expire', async () => {
    const redis = await connectRedis({ url: server!.url, key_prefix: 'x:', log: silentLog })
    const run = redis.script(LIMIT_SCRIPT, 2)
    await run(['limits:{e:c}:windows', 'limits:{e:c}:second'], [1, 9, 9, 9, 9, 0, 0, 0, 0, 0, 0])
    const expiry = async (key: string) => Number(await redis.command('pttl', key))
    expect(await expiry('limits:{e:c}:windows')).toBeGreaterThan(31 * DAY)
    expect(await expiry('limits:{e:c}:second')).toBeLessThanOrEqual(2_000)
    const keys = (await redis.command('keys', '*{e:c}*')) as string[]
    expect(keys.sort()).toEqual(['x:limits:{e:c}:second', 'x:limits:{e:c}:windows'])
    await redis.stop()
  })
})
