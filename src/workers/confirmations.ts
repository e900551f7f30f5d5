import type { Family } from '../chains/chain.ts'
import { confirmationsOf, toTransferView } from '../domain/wallets/transfer-view.ts'
import { keyOf } from '../lib/bytes.ts'
import type { Db } from '../storage/database.ts'
import {
  type DueDelivery,
  deleteWaiting,
  listDueWaiting,
  listNotifiedTransfers,
  lockDueWebhooks,
  releaseWaiting,
  type WaitingDelivery,
  wakeCouriers,
} from '../storage/notifications.ts'
import type { ListedTransfer } from '../storage/transfers.ts'

const batch = 500

type Due = { chain_id: number; chain: Family; head: number; now: Date }

/**
 * Makes the notifications real whose confirmation this head has reached: body, number and time. Runs
 * in the block's transaction, so that what is told is on the chain as it is stored. Says how many.
 */
export async function releaseDue(trx: Db, due: Due): Promise<number> {
  let released = 0
  for (;;) {
    const waiting = await listDueWaiting(trx, { ...due, limit: batch })
    if (waiting.length === 0) break
    // What one batch would lock out of order, another writer could wait for in a circle.
    if (released === 0 && waiting.length === batch) await lockDueWebhooks(trx, due)
    const transfers = await listNotifiedTransfers(trx, due.chain_id, waiting)
    const bodies = waiting
      .map((delivery) => ({ delivery, mine: transfersOf(delivery, transfers) }))
      .filter(({ mine }) => mine.length > 0)
      .sort((a, b) => compare(a, b))
      .map(({ delivery, mine }) => toDue(delivery, mine, due))
    const told = await releaseWaiting(trx, bodies, due.now)
    // Retention may have taken the transfers of something very old, or its webhook is gone: there is
    // nothing left to tell.
    await deleteWaiting(
      trx,
      waiting.map((row) => row.webhook_history_id).filter((id) => !told.has(id)),
    )
    released += told.size
    if (waiting.length < batch) break
  }
  if (released > 0) await wakeCouriers(trx)
  return released
}

/** The transfers that a notification holds: of its wallets, each movement once per wallet. */
function transfersOf(
  { organization_id, transaction_hash, transfer_block, wallet_id }: WaitingDelivery,
  transfers: readonly ListedTransfer[],
): ListedTransfer[] {
  const seen = new Set<string>()
  return transfers.filter((row) => {
    const key = `${row.wallet_id}/${row.ordinal}`
    const mine =
      row.organization_id === organization_id &&
      row.block_number === transfer_block &&
      keyOf(row.transaction_hash) === keyOf(transaction_hash) &&
      (wallet_id === null || wallet_id === row.wallet_id) &&
      !seen.has(key)
    if (mine) seen.add(key)
    return mine
  })
}

type Bodied = { delivery: WaitingDelivery; mine: ListedTransfer[] }

/** In the order of the chain. */
const compare = (a: Bodied, b: Bodied): number =>
  a.delivery.block_number - b.delivery.block_number || a.mine[0]!.ordinal - b.mine[0]!.ordinal

function toDue(
  { webhook_history_id, webhook_id, transaction_hash, transfer_block, backfilled }: WaitingDelivery,
  transfers: readonly ListedTransfer[],
  { chain, head }: Due,
): DueDelivery {
  const name = chain.service === 's' ? 'transaction_digest' : 'transaction_hash'
  return {
    webhook_history_id,
    webhook_id,
    data: {
      [name]: chain.formatTransactionHash(transaction_hash),
      confirmations: confirmationsOf(transfer_block, head),
      ...(backfilled && { backfilled }),
      transfers: transfers.map((row) => ({
        wallet_id: row.wallet_id,
        ...chain.presentTransfer(toTransferView(row, head)),
      })),
    },
  }
}
