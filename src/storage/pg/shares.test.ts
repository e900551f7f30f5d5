import { setImmediate as turn } from 'node:timers/promises'
import type { PostgresPoolClient } from 'kysely'
import { expect, test } from 'vitest'
import { createShares, type SharedPool } from './shares.ts'

const createBench = () => {
  let time = 0
  const seen = { connected: 0, waiting: 0 }
  const pool: SharedPool = {
    connect: async () => {
      seen.connected++
      return { query: async () => ({ rows: [] }), release() {} } as unknown as PostgresPoolClient
    },
    end: async () => {},
    options: {},
    get waitingCount() {
      return seen.waiting
    },
  }
  const shareOf = createShares(pool, { most: 4, timeoutMs: 60_000, now: () => time })
  const running = new Map<string, (() => void)[]>()
  /** Takes a connection and keeps it. */
  const use = (key: string) => {
    void shareOf(key)
      .connection()
      .execute(
        () => new Promise<void>((end) => running.set(key, [...(running.get(key) ?? []), end])),
      )
  }
  const settle = async () => {
    for (let left = 10; left > 0; left--) await turn()
  }
  const end = async (key: string) => {
    running.get(key)?.shift()?.()
    await settle()
  }
  const count = (key: string) => running.get(key)?.length ?? 0
  return { use, end, count, settle, seen, pass: (ms: number) => (time += ms) }
}

test('a caller has half of its share while others use the database, and all of it alone', async () => {
  const { use, end, count, settle, pass } = createBench()
  for (let number = 0; number < 12; number++) use('noisy')
  await settle()
  expect(count('noisy')).toBe(4)
  use('quiet')
  await settle()
  expect(count('quiet')).toBe(1)
  await end('quiet')
  // What it had too much is not given on.
  await end('noisy')
  expect(count('noisy')).toBe(3)
  await end('noisy')
  await end('noisy')
  expect(count('noisy')).toBe(2)
  pass(2_500)
  await end('noisy')
  expect(count('noisy')).toBe(4)
  // Nothing is left to wait for its time limit beside other files.
  while (count('noisy') > 0) await end('noisy')
})

test('a connection goes to the next one of the same caller, unless others wait for the pool', async () => {
  const { use, end, count, settle, seen } = createBench()
  for (let number = 0; number < 9; number++) use('noisy')
  await settle()
  expect(seen.connected).toBe(4)
  await end('noisy')
  await end('noisy')
  expect([count('noisy'), seen.connected]).toEqual([4, 4])
  seen.waiting = 1
  await end('noisy')
  expect([count('noisy'), seen.connected]).toEqual([4, 5])
  while (count('noisy') > 0) await end('noisy')
})
