// The nonce of a new transaction, chosen under the organization's lock of the address (`lockSender`).

import { OperationError } from '../../contract/errors/errors.ts'
import { invalidRequest } from '../../contract/validate.ts'
import type { Db } from '../../storage/pg/database.ts'
import { findHolders, type Sender } from '../../storage/transactions/nonces.ts'
import { type SenderView, viewSender } from '../../storage/transactions/sender-nonces.ts'
import type { Defaults } from './defaults.ts'

/** A nonce, the price that it takes, a lower nonce that is missing, and what else is open at the address. */
type ChosenNonce = {
  nonce: number
  gas_price: bigint
  missing_nonce: number | undefined
  open: SenderView
}

/**
 * Chooses the nonce of a new transaction out of the rows and the count of the chain. The caller has
 * locked the address and is alone at it until its transaction ends. The lowest
 * free one is taken, so that the nonce of a canceled transaction is filled by the next.
 */
export async function chooseNonce(
  trx: Db,
  sender: Sender,
  defaults: Defaults,
): Promise<ChosenNonce> {
  const { asked_nonce, asked_price, node_price, count, next_nonce = count } = defaults
  if (asked_nonce === undefined) {
    const open = await viewSender(trx, sender, { from: count, exceptNonce: undefined })
    const gas_price = asked_price ?? node_price
    return { nonce: open.free, gas_price, missing_nonce: undefined, open }
  }
  if (asked_nonce < count)
    throw invalidRequest([
      {
        field: 'nonce',
        reason: 'OUT_OF_RANGE',
        detail: `Is used on the chain already; the next one is ${count}.`,
      },
    ])
  const [dearest] = await findHolders(trx, sender, asked_nonce)
  const gas_price = asked_price ?? node_price
  const open = await viewSender(trx, sender, { from: next_nonce, exceptNonce: asked_nonce })
  const missing_nonce = open.free < asked_nonce ? open.free : undefined
  const chosen = { nonce: asked_nonce, missing_nonce, open }
  if (!dearest) return { ...chosen, gas_price }
  const least = raisedPrice(dearest.gas_price)
  if (gas_price >= least) return { ...chosen, gas_price }
  if (asked_price === undefined) return { ...chosen, gas_price: least }
  throw new OperationError('REPLACEMENT_UNDERPRICED', {
    detail: `Another transaction has the nonce ${asked_nonce}; to replace it gas_price must be at least ${least}.`,
    errors: [{ field: 'gas_price', reason: 'OUT_OF_RANGE', detail: `Must be at least ${least}.` }],
  })
}

/** The least price with which another transaction of the same nonce is replaced: 10 % more. */
export const raisedPrice = (gas_price: bigint): bigint => {
  const raised = (gas_price * 11n + 9n) / 10n
  return raised > gas_price ? raised : gas_price + 1n
}
