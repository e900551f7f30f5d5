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

/**
 * Collects the nonces that arrive while a statement is under way into the next one. A single caller
 * waits for one commit; under load a hundred callers share it, and its disk flush.
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

  const spendNonces = createSpendNonces(database, memory)

  const run = async () => {
    running++
    while (waiting.length > 0) {
      const batch = waiting.splice(0, maxBatch)
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

  return {
    spend: (row) =>
      new Promise((resolve, reject) => {
        if (waiting.length >= maxWaiting)
          return reject(new OperationError('DATABASE_UNAVAILABLE', { retryAfter: 1 }))
        waiting.push({ row, resolve, reject })
        if (running < statements) void run()
      }),
  }
}
