import { setImmediate as turn } from 'node:timers/promises'
import fc from 'fast-check'
import { type PostgresPoolClient, sql } from 'kysely'
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
  const shareOf = createShares(pool, { alone: 4, beside: 2, timeoutMs: 60_000, now: () => time })
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

type Task = { key: string; fails: boolean; turns: number }

/** A pool of a size, whose clients fail at the statement `fail`. */
const createCountedPool = (size: number) => {
  const queue: (() => void)[] = []
  const seen = { open: 0, most: 0, twice: 0 }
  const serve = () => {
    while (seen.open < size && queue.length > 0) {
      seen.open++
      seen.most = Math.max(seen.most, seen.open)
      queue.shift()!()
    }
  }
  const createClient = () => {
    let isLent = true
    return {
      query: async (text: string) => {
        await turn()
        if (text === 'fail') throw new Error('failed')
        return { rows: [], command: 'SELECT', rowCount: 0 }
      },
      release: () => {
        if (!isLent) seen.twice++
        isLent = false
        seen.open--
        serve()
      },
    } as unknown as PostgresPoolClient
  }
  const pool: SharedPool = {
    connect: () =>
      new Promise((resolve, reject) => {
        queue.push(() => {
          if (connects++ % 7 !== 6) return resolve(createClient())
          seen.open--
          reject(new Error('no connection'))
        })
        serve()
      }),
    end: async () => {},
    options: {},
    get waitingCount() {
      return queue.length
    },
  }
  let connects = 0
  return { pool, seen }
}

test('whatever fails, every task ends, each connection goes back once, and no caller has more than its share', async () => {
  const task = fc.record({
    key: fc.constantFrom('a', 'b', 'c'),
    fails: fc.boolean(),
    turns: fc.nat(4),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(task, { maxLength: 60 }), async (tasks: Task[]) => {
      const { pool, seen } = createCountedPool(5)
      const shareOf = createShares(pool, { alone: 4, beside: 2, timeoutMs: 60_000, now: () => 0 })
      const running = new Map<string, number>()
      let beyond = 0
      const run = ({ key, fails, turns }: Task) =>
        shareOf(key)
          .connection()
          .execute(async (db) => {
            const now = (running.get(key) ?? 0) + 1
            running.set(key, now)
            if (now > 4) beyond++
            try {
              for (let left = turns; left > 0; left--) await turn()
              await sql.raw(fails ? 'fail' : 'work').execute(db)
            } finally {
              running.set(key, running.get(key)! - 1)
            }
          })
      await Promise.allSettled(tasks.map(run))
      await turn()
      expect(seen).toMatchObject({ open: 0, twice: 0 })
      expect(seen.most).toBeLessThanOrEqual(5)
      expect(beyond).toBe(0)
    }),
    { numRuns: 60 },
  )
})
