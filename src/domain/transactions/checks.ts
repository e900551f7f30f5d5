// What is refused when a transaction is created. A transaction that no node accepts would hold its nonce and stop every later one.

import type { BlockLimits, TransactionFields } from '../../chains/sending.ts'
import { type FieldError, OperationError } from '../../contract/errors/errors.ts'
import { invalidRequest } from '../../contract/validate.ts'

/** What a new transaction is held against. */
export type Facts = BlockLimits & {
  intrinsic_gas: bigint
  node_price: bigint
  /** What the address has. */
  balance: bigint
  /** What other open transactions of the organization at the address may spend. */
  committed: bigint
  /** The lowest nonce that no transaction has, where it is below the one that was asked for. */
  missing_nonce: number | undefined
}

type Checked = Pick<TransactionFields, 'value' | 'gas' | 'gas_price' | 'nonce'>

// geth refuses fees above one coin as well (--rpc.txfeecap). Where a coin is worth little such a fee
// is usual, so the price must be absurd, too.
const highestFee = 10n ** 18n
const absurdFactor = 100n

/**
 * Refuses what no node would take or what is certainly a mistake, every field at once; gives
 * sentences on what may be meant. A transaction that cannot be sent would keep its nonce, and all
 * later ones of the address would wait for it.
 */
export function checkAgainstChain(transaction: Checked, facts: Facts): string[] {
  const { value, gas, gas_price } = transaction
  const { balance, committed, base_fee } = facts
  const errors = refusals(transaction, facts)
  if (errors.length > 0) throw invalidRequest(errors)
  const cost = value + gas * gas_price
  if (balance < cost) throw insufficientFunds({ balance, cost })

  const warnings: string[] = []
  if (base_fee !== undefined && gas_price < base_fee)
    warnings.push(
      `gas_price ${gas_price} is below the base fee of the newest block, ${base_fee}: no block takes the transaction before the base fee falls.`,
    )
  if (balance < cost + committed)
    warnings.push(
      `The address has ${balance}; this transaction may spend ${cost} and other open transactions of the address ${committed}.`,
    )
  const { missing_nonce } = facts
  if (missing_nonce !== undefined)
    warnings.push(
      `No block takes nonce ${transaction.nonce} before nonce ${missing_nonce}, which no transaction has.`,
    )
  return warnings
}

function refusals({ gas, gas_price }: Checked, facts: Facts): FieldError[] {
  const { intrinsic_gas, gas_limit, node_price } = facts
  const errors: FieldError[] = []
  const refuse = (field: string, detail: string) =>
    errors.push({ field, reason: 'OUT_OF_RANGE', detail })
  if (gas < intrinsic_gas)
    refuse('gas', `Must be at least ${intrinsic_gas}, which the chain takes for the data alone.`)
  // Some development chains have no limit and say 0.
  if (gas_limit > 0n && gas > gas_limit)
    refuse('gas', `Must be at most ${gas_limit}, the gas limit of a block.`)
  if (gas * gas_price > highestFee && gas_price > node_price * absurdFactor)
    refuse(
      'gas_price',
      `Must be at most ${node_price * absurdFactor}, ${absurdFactor} times the price of the nodes: the fee could be ${gas * gas_price}.`,
    )
  return errors
}

/** The refusal of a transaction that the address cannot pay. */
export const insufficientFunds = ({
  balance,
  cost,
}: {
  balance: bigint
  cost: bigint
}): OperationError =>
  new OperationError('INSUFFICIENT_FUNDS', {
    detail: `The address has ${balance}, and the transaction needs ${cost}.`,
    errors: [{ field: 'from', reason: 'INSUFFICIENT_FUNDS', detail: `Has ${balance} of ${cost}.` }],
  })
