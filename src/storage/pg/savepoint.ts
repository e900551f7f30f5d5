import { sql } from 'kysely'
import type { Db } from './database.ts'
import { isDatabaseUnavailable } from './errors.ts'

/**
 * Works within a transaction and undoes only this work where it fails. A failure of the database itself ends the transaction.
 */
export const inSavepoint = async <value>(
  trx: Db,
  work: () => Promise<value>,
): Promise<{ value: value } | { error: unknown }> => {
  await sql`savepoint part`.execute(trx)
  try {
    const value = await work()
    await sql`release savepoint part`.execute(trx)
    return { value }
  } catch (error) {
    if (isDatabaseUnavailable(error)) throw error
    await sql`rollback to savepoint part`.execute(trx)
    return { error }
  }
}
