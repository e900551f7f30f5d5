// Why a sent transaction is in no block: a lower nonce that is missing, or a price below what the nodes ask for. The answer
// is shown in `last_error`. It names transactions of the own organization only.

import type { Sending } from '../../chains/sending.ts'
import type { Db } from '../../storage/pg/database.ts'
import { findOwnHolder, type NonceHolder } from '../../storage/transactions/nonces.ts'
import { isStuck } from '../../storage/transactions/record.ts'
import type { TransactionRow } from '../../storage/transactions/transactions.ts'
import { raisedPrice } from './nonce.ts'

/**
 * Why a transaction that the nodes have is in no block yet; undefined while nothing is known. Holders
 * of nonces are named only within the organization.
 */
export async function explainWait(
  { db, sending }: { db: Db; sending: Sending },
  row: TransactionRow,
  now: Date,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { from, nonce, gas_price } = row
  const next = await sending.transactionCount(from, 'pending', signal)
  if (next < nonce) return describeGap(next, await findOwnHolder(db, row, next))
  if (!isStuck(row, now)) return undefined
  const [price, { base_fee = 0n }] = await Promise.all([
    sending.gasPrice(signal),
    sending.blockLimits(signal),
  ])
  const wanted = higher(price, base_fee)
  if (gas_price >= wanted) return 'The nodes have it, and no block has taken it yet.'
  const least = raisedPrice(gas_price)
  return `gas_price ${gas_price} is below what the nodes ask for now, ${wanted}. Wait, or replace it: CreateTransaction with nonce ${nonce} and gas_price ${higher(wanted, least)} or more.`
}

// Math.max takes no bigint.
const higher = (one: bigint, other: bigint): bigint => {
  if (one > other) return one
  return other
}

function describeGap(nonce: number, holder: NonceHolder | undefined): string {
  if (!holder)
    return `Waits for nonce ${nonce}, which no transaction of the organization has: create one with nonce ${nonce}.`
  const { transaction_id, transaction_state, last_error } = holder
  const waits = `Waits for nonce ${nonce} of transaction ${transaction_id}, which is ${transaction_state}`
  switch (transaction_state) {
    case 'TRANSACTION_STATE_CREATED':
      return `${waits}: sign and send it, or cancel it and create another one.`
    case 'TRANSACTION_STATE_SIGNED':
      return last_error
        ? `${waits} because the nodes refused it (${last_error}): send it again once the reason is gone, or cancel it and create another one.`
        : `${waits}: send it, or cancel it and create another one.`
    default:
      return `${waits} and is being sent again.`
  }
}
