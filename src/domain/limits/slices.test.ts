import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { silentLog } from '../../lib/log.ts'
import { type RateLimits, unlimited } from './decision.ts'
import { createLimiter, type Limiter } from './limiter.ts'
import { createSliceOwner } from './slice-owner.ts'
import { createSlicedLimiter } from './sliced-limiter.ts'
import { createManualClock } from './testing/fakes.ts'

const call = { organization_id: 'o', chain: 'c' }
const perSecond = (limit: number): RateLimits => ({ ...unlimited, per_second_limit: limit })

/** An owner and some processes that reach it with a delay, all in a time that the test moves by milliseconds. */
function createWorld(processes: number, delayOf: () => number) {
  const clock = createManualClock(Date.UTC(2026, 0, 1, 12))
  const timers = new Set<{ at: number; run(): void }>()
  const later = (run: () => void, ms: number) => {
    const timer = { at: clock.now() + ms, run }
    timers.add(timer)
    return () => void timers.delete(timer)
  }
  const delayed = () =>
    new Promise<void>((resolve) => {
      const ms = delayOf()
      if (ms === 0) resolve()
      else later(resolve, ms)
    })
  const limiter = createLimiter({ clock, log: silentLog })
  const owner = createSliceOwner({ limiter, holders: processes })
  const start = (holder: string): Limiter =>
    createSlicedLimiter({
      now: clock.now,
      later,
      ask: async (asks) => {
        await delayed()
        const replies = await Promise.all(asks.map((ask) => owner.ask(holder, ask)))
        await delayed()
        return replies
      },
    })
  const settle = async () => {
    for (let turn = 0; turn < 30; turn++) await Promise.resolve()
  }
  return {
    ...{ clock, limiter, owner, start, settle },
    limiters: Array.from({ length: processes }, (_, index) => start(`${index}`)),
    step: async () => {
      clock.step(1)
      for (const timer of timers) {
        if (timer.at > clock.now()) continue
        timers.delete(timer)
        timer.run()
      }
      await settle()
    },
  }
}

/** The largest number of calls within any second. */
const densest = (times: readonly number[]): number => {
  let most = 0
  let first = 0
  for (const [last, time] of times.entries()) {
    while (times[first]! <= time - 1_000) first++
    most = Math.max(most, last - first + 1)
  }
  return most
}

describe('processes that share a limit by parts', () => {
  it('never admit more than the limit together, whatever the delays, costs and deaths', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.record({
          limit: fc.integer({ min: 1, max: 40 }),
          processes: fc.integer({ min: 1, max: 4 }),
          delays: fc.array(fc.integer({ min: 0, max: 30 }), { minLength: 1, maxLength: 20 }),
          calls: fc.array(
            fc.record({
              at: fc.nat(1_400),
              process: fc.nat(3),
              cost: fc.integer({ min: 1, max: 3 }),
              dies: fc.boolean(),
            }),
            { minLength: 1, maxLength: 150 },
          ),
        }),
        async ({ limit, processes, delays, calls }) => {
          let turn = 0
          const world = createWorld(processes, () => delays[turn++ % delays.length]!)
          const limits = perSecond(limit)
          const admitted: number[] = []
          for (let time = 0; time <= 1_450; time++) {
            for (const { at, process, cost, dies } of calls) {
              if (at !== time) continue
              const index = process % processes
              if (dies && cost === 3) {
                await world.owner.leave(`${index}`)
                world.limiters[index] = world.start(`${index}`)
              }
              const decision = world.limiters[index]!.take({ ...call, limits, cost })
              void Promise.resolve(decision).then(({ allowed }) => {
                if (allowed) for (let one = 0; one < cost; one++) admitted.push(world.clock.now())
              })
            }
            await world.step()
          }
          expect(densest(admitted)).toBeLessThanOrEqual(limit)
        },
      ),
      { numRuns: 25 },
    )
  })

  it.each([
    { limit: 100, processes: 2 },
    { limit: 1_000, processes: 4 },
  ])('admit at least 98 % of $limit a second under even load in $processes', async (given) => {
    const { limit, processes } = given
    const world = createWorld(processes, () => 0)
    const limits = perSecond(limit)
    const seconds = 4
    const admitted: number[] = []
    // Half as much again as the limit, spread over all processes.
    const perMs = (limit * 1.5) / 1_000
    let sent = 0
    for (let time = 0; time < seconds * 1_000; time++) {
      for (; sent < (time + 1) * perMs; sent++) {
        const decision = world.limiters[sent % processes]!.take({ ...call, limits })
        void Promise.resolve(decision).then(({ allowed }) => {
          if (allowed) admitted.push(world.clock.now())
        })
      }
      await world.step()
    }
    expect(densest(admitted)).toBeLessThanOrEqual(limit)
    expect(admitted.length).toBeGreaterThanOrEqual(limit * seconds * 0.98)
  })

  it('answer at once under load, and wait once after a pause', async () => {
    const world = createWorld(1, () => 0)
    const [limiter] = world.limiters
    const take = () => limiter!.take({ ...call, limits: perSecond(100_000) })
    const first = take()
    expect(first).toBeInstanceOf(Promise)
    expect(await first).toMatchObject({ allowed: true, window: 'second', limit: 100_000 })
    for (let time = 0; time < 50; time++) {
      take()
      take()
      await world.step()
    }
    const before = take()
    expect(before).not.toBeInstanceOf(Promise)
    // What is not used goes back.
    for (let time = 0; time < 1_200; time++) await world.step()
    const { windows } = await world.limiter.take({ ...call, limits: perSecond(10), cost: 0 })
    expect(windows[0]!.remaining).toBe(10)
    expect(take()).toBeInstanceOf(Promise)
  })

  it('count calls without a limit, and refuse at a limit of 0', async () => {
    const world = createWorld(1, () => 0)
    const [limiter] = world.limiters
    for (let turn = 0; turn < 7; turn++)
      expect(limiter!.take({ ...call, limits: unlimited })).toMatchObject({ allowed: true })
    await limiter!.stop()
    const hourly = { ...unlimited, per_hour_limit: 100 }
    const { windows } = await world.limiter.take({ ...call, limits: hourly, cost: 0 })
    expect(windows[0]).toMatchObject({ window: 'hour', remaining: 93 })
    const blocked = await world.start('other').take({ ...call, limits: perSecond(0) })
    expect(blocked).toMatchObject({ allowed: false, limit: 0 })
  })

  it('leave no room for calls that the owner admits itself beside them', async () => {
    const world = createWorld(1, () => 0)
    const limits = perSecond(100)
    const isAdmitted = async (limiter: Pick<Limiter, 'take'>) =>
      (await limiter.take({ ...call, limits })).allowed
    let admitted = 0
    for (let turn = 0; turn < 300; turn++) {
      const limiter = turn % 3 === 0 ? world.owner : world.limiters[0]!
      if (await isAdmitted(limiter)) admitted++
    }
    expect(admitted).toBeLessThanOrEqual(100)
    expect(admitted).toBeGreaterThan(90)
    const { limit } = await world.owner.take({ ...call, limits })
    expect(limit).toBe(100)
  })
})
