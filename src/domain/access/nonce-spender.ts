import { OperationError } from '../../contract/errors/errors.ts'
import type { RequestNonce } from '../../storage/access/nonce-leads.ts'
import type { NonceMemory } from '../../storage/access/nonce-memory.ts'
import { createSpendNonces, type NonceOutcome } from '../../storage/access/nonces.ts'
import type { Database } from '../../storage/pg/database.ts'

/** Spends nonces durably, several requests in one statement. */
export type NonceSpender = { spend(row: RequestNonce): Promise<NonceOutcome> }

type Waiting = {
  row: RequestNonce
  resolve(outcome: NonceOutcome): void
  reject(error: unknown): void
}

/** A statement that takes longer no longer keeps the next one from starting beside it. */
const patienceMs = 3

/**
 * Collects the nonces that arrive in one turn of the event loop, or while a statement is under way, into the next one. A
 * single caller waits for one commit; under load a hundred callers share it. One statement at a time, unless it is
 * slow: with two that start at once there were twice as many (10,950 instead of 5,100 for 30,000 requests of 32 connections),
 * and a request took 19 % more CPU (274 and 278 µs instead of 231 and 232).
 */
export function createNonceSpender(
  database: Pick<Database, 'db' | 'pool'>,
  {
    maxBatch = 500,
    maxWaiting = 10_000,
    statements = 2,
    memory,
  }: { maxBatch?: number; maxWaiting?: number; statements?: number; memory?: NonceMemory } = {},
): NonceSpender {
  const waiting: Waiting[] = []
  let running = 0
  /** When the last statement began. */
  let began = 0
  let isStarting = false
  let isWatching = false

  const spendNonces = createSpendNonces(database, memory)

  const run = async () => {
    running++
    while (waiting.length > 0) {
      const batch = waiting.splice(0, maxBatch)
      began = performance.now()
      try {
        const outcomes = await spendNonces(batch.map(({ row }) => row))
        batch.forEach(({ resolve }, index) => {
          resolve(outcomes[index] as NonceOutcome)
        })
      } catch (error) {
        for (const { reject } of batch) reject(error)
      }
    }
    running--
  }

  const start = () => {
    isStarting = false
    void run()
  }

  const watch = () => {
    isWatching = false
    if (waiting.length === 0) return
    if (performance.now() - began >= patienceMs) void run()
    startOrWatch()
  }

  const startOrWatch = () => {
    if (running === 0 && !isStarting) {
      isStarting = true
      setImmediate(start)
    } else if (running > 0 && running < statements && !isWatching) {
      isWatching = true
      setTimeout(watch, patienceMs)
    }
  }

  return {
    spend: (row) =>
      new Promise((resolve, reject) => {
        if (waiting.length >= maxWaiting)
          return reject(new OperationError('DATABASE_UNAVAILABLE', { retryAfter: 1 }))
        waiting.push({ row, resolve, reject })
        startOrWatch()
      }),
  }
}
