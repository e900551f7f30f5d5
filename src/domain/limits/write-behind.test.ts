import { expect, test } from 'vitest'
import { silentLog } from '../../lib/log.ts'
import type { RateLimits } from './decision.ts'
import { createEntry } from './entries.ts'
import { createLimiter, type LimiterOptions } from './limiter.ts'
import { adoptTotal } from './stored-usage.ts'
import { createFakeStore, createManualClock } from './testing/fakes.ts'

const NOON = Date.parse('2026-11-15T12:00:00Z')
const MONTH = Date.parse('2026-11-01T00:00:00Z')

const limits: RateLimits = {
  per_second_limit: -1,
  per_hour_limit: 1_000_000,
  per_day_limit: -1,
  per_month_limit: -1,
}

const start = (options: Partial<LimiterOptions> = {}) => {
  const clock = createManualClock(NOON)
  const store = createFakeStore()
  const limiter = createLimiter({ clock, log: silentLog, store, ...options })
  const take = async (organization_id: string, cost = 1) =>
    await limiter.take({ organization_id, chain: 'c', limits, cost })
  const usedIn = (organization_id: string, period: 'hour' | 'month', period_start: number) =>
    store.used({ organization_id, chain: 'c', period, period_start })
  return { clock, store, limiter, take, usedIn }
}

test('one statement carries all dirty counters, and clean ones are not written', async () => {
  const { store, limiter, take } = start()
  for (let call = 0; call < 5; call += 1) await Promise.all(['a', 'b', 'c'].map((id) => take(id)))
  await limiter.flush()
  await limiter.flush()
  expect(store.adds).toHaveLength(1)
  expect(store.adds[0]!.map(({ delta }) => delta)).toEqual(new Array(9).fill(5))
  await take('b')
  await limiter.flush()
  expect(store.adds[1]!.map(({ organization_id }) => organization_id)).toEqual(['b', 'b', 'b'])
})

test('keys of a statement are unique and sorted', async () => {
  const { clock, store, limiter, take } = start({ max_entries: 2 })
  for (const id of ['d', 'b', 'a', 'c', 'b', 'd']) await take(id)
  clock.step(3_600_000)
  for (const id of ['a', 'd']) await take(id)
  await limiter.flush()
  expect(store.adds.length).toBeGreaterThan(0)
  for (const batch of store.adds) {
    const keys = batch.map((row) =>
      [row.organization_id, row.chain, row.period, row.period_start].join('\n'),
    )
    expect(keys).toEqual([...new Set(keys)].sort())
  }
})

test.each(['refuses', 'loses_answer'] as const)(
  'a store that %s loses nothing and doubles nothing',
  async (failure) => {
    const { store, limiter, take, usedIn } = start()
    await take('a', 3)
    store.failure = failure
    for (let attempt = 0; attempt < 4; attempt += 1) {
      await expect(limiter.flush()).rejects.toThrow()
      await take('a', 2)
    }
    expect(limiter.status().stored).toBe(false)
    store.failure = 'none'
    await limiter.flush()
    expect(usedIn('a', 'hour', NOON)).toBe(11)
    expect(usedIn('a', 'month', MONTH)).toBe(11)
    expect((await take('a')).remaining).toBe(999_988)
    expect(limiter.status().stored).toBe(true)
  },
)

test('counts of a window that ended are stored under that window', async () => {
  const { clock, store, limiter, take, usedIn } = start()
  store.failure = 'none'
  await take('a', 4)
  store.failure = 'refuses'
  clock.step(3_600_000)
  await take('a', 5)
  await expect(limiter.flush()).rejects.toThrow()
  clock.step(3_600_000)
  await take('a', 6)
  store.failure = 'none'
  await limiter.flush()
  expect([0, 1, 2].map((hour) => usedIn('a', 'hour', NOON + hour * 3_600_000))).toEqual([4, 5, 6])
  expect(usedIn('a', 'month', MONTH)).toBe(15)
})

test('memory is bounded, and an entry that leaves it leaves its counts behind', async () => {
  const { store, limiter, take, usedIn } = start({ max_entries: 10 })
  const ids = Array.from({ length: 500 }, (_, index) => `o${index}`)
  for (const id of [...ids, ...ids]) await take(id)
  expect(limiter.status().entries).toBe(10)
  await limiter.flush()
  expect(ids.map((id) => usedIn(id, 'hour', NOON))).toEqual(ids.map(() => 2))
  for (const id of ids) expect((await take(id)).remaining).toBe(999_997)
  expect(store.adds.length).toBeLessThan(5)
})

test('entries in use stay in memory, the longest unused leave', async () => {
  const { store, limiter, take } = start({ max_entries: 4 })
  const loads: string[] = []
  const load = store.load
  store.load = (id, chain, now) => {
    loads.push(id)
    return load(id, chain, now)
  }
  for (const id of ['a', 'b', 'c', 'd']) await take(id)
  await limiter.flush()
  for (const id of ['e', 'a', 'f', 'a', 'g', 'a', 'h', 'a']) {
    await take(id)
    await limiter.flush()
  }
  expect(loads.filter((id) => id === 'a').length).toBeLessThanOrEqual(2)
})

test('the queue is bounded while the store is unreachable, and the loss is reported', async () => {
  const { store, limiter, take } = start({ max_entries: 1, max_kept: 300 })
  store.failure = 'refuses'
  for (let index = 0; index < 201; index += 1) await take(`o${index}`)
  const { entries, kept_counts, lost_counts } = limiter.status()
  expect({ entries, kept_counts }).toEqual({ entries: 1, kept_counts: 300 })
  expect(lost_counts).toBe(200 * 3 - 300)
})

test('stop stores the counts, and gives up on a store that hangs', async () => {
  const first = start()
  await first.take('a', 5)
  await first.limiter.stop()
  expect(first.usedIn('a', 'hour', NOON)).toBe(5)

  const second = start()
  await second.take('a', 5)
  second.store.failure = 'hangs'
  const stopping = second.limiter.stop()
  second.clock.step(5_000)
  await stopping
  expect(second.usedIn('a', 'hour', NOON)).toBe(0)
})

test('a total of a later window opens it, and the counts of the earlier one are kept', () => {
  const entry = createEntry('a', 'c')
  const kept: number[] = []
  const keep = (_: unknown, { start, delta }: { start: number; delta: number }) =>
    kept.push(start, delta)
  const total = { organization_id: 'a', chain: 'c', period: 'month', used: 7 } as const
  adoptTotal(entry, { ...total, period_start: MONTH }, keep)
  entry.month.delta = 3
  adoptTotal(entry, { ...total, period_start: MONTH - 1 }, keep)
  expect([kept, entry.month.used]).toEqual([[], 7])
  const december = Date.parse('2026-12-01T00:00:00Z')
  adoptTotal(entry, { ...total, period_start: december, used: 2 }, keep)
  expect(kept).toEqual([MONTH, 3])
  const end = Date.parse('2027-01-01T00:00:00Z')
  expect(entry.month).toMatchObject({ start: december, end, used: 2, delta: 0 })
})
