import { expandBacklogs } from '../../storage/balances/backlog.ts'
import type { Db } from '../../storage/pg/database.ts'
import { lockCursorInTurn } from '../../storage/tracking/blocks.ts'
import { inBulkTurn } from '../bulk.ts'
import type { Context } from '../context.ts'

/** Rows of a page. A page of 1,000 addresses took 25 ms. */
export const pageRows = 1_000

/**
 * Changes what is tracked, in transactions of one page each, until a page returns undefined. Each page gets what the one
 * before returned, and the number of the last block. Blocks of all organizations wait while a page holds the cursor: in
 * one transaction, a wallet of a million addresses would stop the network for as long as they take. After a call that
 * broke off, some pages are done, and repeating it does the others.
 */
export async function inPages<key>(
  context: Pick<Context, 'db' | 'signal' | 'bulkTurns' | 'principal'>,
  network_id: number,
  change: (trx: Db, head: number, after: key | undefined) => Promise<key | undefined>,
): Promise<void> {
  let after: key | undefined
  do {
    const page = async (trx: Db) => {
      const cursor = await lockCursorInTurn(trx, network_id)
      // Rows that name what is changed must be there before it is changed.
      await expandBacklogs(trx, network_id)
      return await change(trx, cursor?.block_number ?? 0, after)
    }
    after = await inBulkTurn(context, page, after === undefined)
  } while (after !== undefined)
}
