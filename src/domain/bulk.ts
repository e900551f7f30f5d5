import type { Db } from '../storage/pg/database.ts'
import type { Context } from './context.ts'

/**
 * Does a page of bulk work in a transaction, when it is the turn of the organization (`bulk-turns.ts`). Only the first page of an
 * operation may be refused.
 */
export const inBulkTurn = async <result>(
  { db, signal, bulkTurns, principal }: Pick<Context, 'db' | 'signal' | 'bulkTurns' | 'principal'>,
  page: (trx: Db) => Promise<result>,
  isFirst = true,
): Promise<result> => {
  const act = () => {
    signal.throwIfAborted()
    return db.transaction().execute(page)
  }
  return bulkTurns
    ? await bulkTurns.run(principal.organization_id, act, isFirst ? undefined : signal)
    : await act()
}
