import type { Family } from '../chains/chain.ts'
import { confirmationsOf, toTransferView } from '../domain/wallets/transfer-view.ts'
import { keyOf } from '../lib/bytes.ts'
import { notifyChange } from '../storage/changes.ts'
import type { Db } from '../storage/database.ts'
import {
  type DueDelivery,
  deleteWaiting,
  listDueWaiting,
  listNotifiedTransfers,
  releaseWaiting,
  takeSequences,
  type WaitingDelivery,
} from '../storage/notifications.ts'
import type { ListedTransfer } from '../storage/transfers.ts'

const batch = 500

/** The topic under which couriers are woken. */
export const courierTopic = 'courier'

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
    const transfers = await listNotifiedTransfers(trx, due.chain_id, waiting)
    const bodies = waiting
      .map((delivery) => ({ delivery, mine: transfersOf(delivery, transfers) }))
      .filter(({ mine }) => mine.length > 0)
      .sort((a, b) => compare(a, b))
      .map(({ delivery, mine }) => toDue(delivery, mine, due))
    await release(trx, bodies, due.now)
    const told = new Set(bodies.map(({ webhook_history_id }) => webhook_history_id))
    // Retention may have taken the transfers of something very old: there is nothing left to tell.
    await deleteWaiting(
      trx,
      waiting.map((row) => row.webhook_history_id).filter((id) => !told.has(id)),
    )
    released += bodies.length
    if (waiting.length < batch) break
  }
  // Once per transaction: NOTIFY takes a lock of the whole server at commit.
  if (released > 0) await notifyChange(trx, { kind: 'wake', topic: courierTopic })
  return released
}

/** Gives notifications their numbers and hands them to the couriers. */
export async function release(trx: Db, due: readonly DueDelivery[], now: Date): Promise<void> {
  const counts = new Map<string, number>()
  for (const { webhook_id } of due) counts.set(webhook_id, (counts.get(webhook_id) ?? 0) + 1)
  const next = await takeSequences(trx, counts)
  const numbered = due.map((delivery) => {
    const sequence = next.get(delivery.webhook_id)!
    next.set(delivery.webhook_id, sequence + 1)
    return { ...delivery, sequence, data: { ...delivery.data, sequence } }
  })
  await releaseWaiting(trx, numbered, now)
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
  { webhook_history_id, webhook_id, transaction_hash, transfer_block }: WaitingDelivery,
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
      transfers: transfers.map((row) => ({
        wallet_id: row.wallet_id,
        ...chain.presentTransfer(toTransferView(row, head)),
      })),
    },
  }
}
