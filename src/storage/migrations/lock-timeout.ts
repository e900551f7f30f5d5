import { setTimeout as delay } from 'node:timers/promises'
import { type Kysely, sql, type Transaction } from 'kysely'

// biome-ignore lint/suspicious/noExplicitAny: migrations run before there is a schema to type
type Any = any

const timeoutMs = 3_000
const attempts = 100
const pauseMs = 100
const lockNotAvailable = '55P03'

/**
 * Runs work in a transaction that waits only a moment for each lock, and begins again where one was not granted. A
 * statement that waits for a table holds up every statement that comes after it, so it must not wait for long.
 */
export async function withLockTimeout(
  session: Kysely<Any>,
  work: (trx: Transaction<Any>) => Promise<void>,
  onRefused: (attempt: number) => void = () => {},
): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await session.transaction().execute(async (trx) => {
        await sql`set local lock_timeout = ${sql.lit(timeoutMs)}`.execute(trx)
        await work(trx)
      })
      return
    } catch (error) {
      const { code } = error as { code?: string }
      if (code !== lockNotAvailable || attempt === attempts) throw error
      onRefused(attempt)
      await delay(attempt * pauseMs)
    }
  }
}
