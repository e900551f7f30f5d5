import { expect, test } from 'vitest'
import { silentLog } from '../../lib/log.ts'
import type { RateLimits } from './decision.ts'
import { createLimiter } from './limiter.ts'
import { createManualClock } from './testing/fakes.ts'
import { calendarWindows } from './windows.ts'

const NOON = Date.parse('2026-11-15T12:00:00Z')
const limits: RateLimits = {
  per_second_limit: 10,
  per_hour_limit: 100,
  per_day_limit: -1,
  per_month_limit: -1,
}

const start = ({ replicas = 4, isStrict = false } = {}) => {
  const clock = createManualClock(NOON)
  const server = { up: true, ready: true, asked: 0, hour_used: 0, reply: undefined as unknown }
  const run = async () => {
    server.asked += 1
    if (!server.up) throw new Error('gone')
    const { hour, day, month } = calendarWindows(clock.now())
    return server.reply ?? [clock.now(), hour, server.hour_used, day, 0, month, 0, 0, 1_000, 1_000]
  }
  const limiter = createLimiter({
    clock,
    log: silentLog,
    redis: { ready: () => server.ready, run },
    ...{ replicas, isStrict },
  })
  const take = (cost = 1) => limiter.take({ organization_id: 'o', chain: 'c', limits, cost })
  return { clock, server, limiter, take }
}

test('a call that Redis fails is decided here, with the share of one replica', async () => {
  const { clock, server, take } = start()
  server.up = false
  const decisions = await Promise.all([take(2), take(1)])
  expect(decisions).toMatchObject([
    { allowed: true, limit: 10, remaining: 0 },
    { allowed: false, window: 'second', limit: 10, remaining: 0 },
  ])
  for (let second = 0; second < 20; second += 1) {
    clock.step(1_000)
    await take(2)
  }
  expect(await take(2)).toMatchObject({ allowed: false, window: 'hour', limit: 100, remaining: 1 })
})

test('a strict limiter refuses what a limit applies to until Redis is back', async () => {
  const { clock, server, limiter, take } = start({ isStrict: true })
  expect(await take()).toMatchObject({ allowed: true })
  server.up = false
  for (const decision of [await take(), await take()])
    expect(decision).toMatchObject({
      ...{ allowed: false, window: 'second', limit: 10, remaining: 0, retry_after_ms: 1_000 },
    })
  const unlimited = { ...limits, per_second_limit: -1, per_hour_limit: -1 }
  const free = limiter.take({ organization_id: 'o', chain: 'free', limits: unlimited })
  expect(await free).toMatchObject({ allowed: true })
  server.up = true
  clock.step(1_000)
  expect(await take()).toMatchObject({ allowed: true })
})

test('while Redis is unreachable one call per second tries it, the others are answered at once', async () => {
  const { clock, server, limiter, take } = start()
  server.up = false
  await take()
  for (let call = 0; call < 50; call += 1) expect(take()).not.toBeInstanceOf(Promise)
  expect(server.asked).toBe(1)
  clock.step(1_000)
  const [trial, other] = [take(), take()]
  expect([trial instanceof Promise, other instanceof Promise]).toEqual([true, false])
  await trial
  expect(limiter.status().mode).toBe('redis_away')
  server.up = true
  clock.step(1_000)
  await take()
  expect(limiter.status().mode).toBe('redis')
  expect(take()).toBeInstanceOf(Promise)
})

test('a connection that is not ready is not asked', () => {
  const { server, take } = start()
  server.ready = false
  expect(take()).toMatchObject({ allowed: true })
  expect(server.asked).toBe(0)
})

test('no more calls wait for Redis than the bound', async () => {
  const { server, take } = start()
  const waiting = Array.from({ length: 10_000 }, () => take(0))
  expect(take(0)).not.toBeInstanceOf(Promise)
  await Promise.all(waiting)
  expect(server.asked).toBe(10_000)
  expect(take(0)).toBeInstanceOf(Promise)
})

test('an answer that is none counts as a failure', async () => {
  const { server, limiter, take } = start()
  server.reply = 'OK?'
  expect(await take()).toMatchObject({ allowed: true })
  expect(limiter.status().mode).toBe('redis_away')
})

test('what Redis counted last is where the share of the rest begins', async () => {
  const { server, take } = start()
  server.hour_used = 60
  expect(await take(0)).toMatchObject({ allowed: true })
  server.up = false
  await take(0)
  const { windows } = await take(0)
  expect(windows.find(({ window }) => window === 'hour')).toMatchObject({ remaining: 10 })
})

test('without Redis as well, several replicas divide the limits', () => {
  const clock = createManualClock(NOON)
  const limiter = createLimiter({ clock, log: silentLog, replicas: 4 })
  const take = () => limiter.take({ organization_id: 'o', chain: 'c', limits, cost: 2 })
  expect([take(), take()]).toMatchObject([{ allowed: true }, { allowed: false, window: 'second' }])
})
