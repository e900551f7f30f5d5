import { expandBacklogs } from '../storage/balances/backlog.ts'
import type { Db } from '../storage/pg/database.ts'
import { lockCursorInTurn } from '../storage/tracking/blocks.ts'
import { inBulkTurn } from './bulk.ts'
import type { Context } from './context.ts'

/** Rows of a page. A page of 1,000 addresses took 25 ms. */
export const pageRows = 1_000

type Page<key> = (trx: Db, head: number, after: key | undefined) => Promise<key | undefined>
type BulkContext = Pick<Context, 'db' | 'signal' | 'bulkTurns' | 'principal'>

/**
 * Changes what blocks read, in transactions of one page each, until a page returns undefined. Each page gets the number of the
 * last block, and what the page before returned. Blocks of all organizations wait while a page holds the cursor: in one
 * transaction, a million rows would stop the network for as long as they take. After a call that broke off, some pages are
 * done, and repeating it does the others.
 */
export async function inPages<key>(
  context: BulkContext,
  network_id: number,
  change: Page<key>,
): Promise<void> {
  let after: key | undefined
  do {
    const page = async (trx: Db) => {
      const cursor = await lockCursorInTurn(trx, network_id)
      return await change(trx, cursor?.block_number ?? 0, after)
    }
    after = await inBulkTurn(context, page, after === undefined)
  } while (after !== undefined)
}

/** The same for what is tracked: rows that name it must be there before it is changed. */
export const inTrackedPages = <key>(
  context: BulkContext,
  network_id: number,
  change: Page<key>,
): Promise<void> =>
  inPages<key>(context, network_id, async (trx, head, after) => {
    await expandBacklogs(trx, network_id)
    return await change(trx, head, after)
  })
