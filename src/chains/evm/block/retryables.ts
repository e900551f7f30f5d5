import { hash } from 'node:crypto'
import { quantityOf, type RawReceipt, type ReadTransaction, typeOf } from '../codec/raw.ts'

// Retryable tickets of Arbitrum. Their coin moves outside of calls: a node's traces show it differently for
// each kind, and receipts not at all. The amounts follow from the fields of the transactions, as in
// OffchainLabs/nitro: arbos/tx_processor.go (StartTxHook for ArbitrumSubmitRetryableTx and
// ArbitrumRetryTx, EndTxHook) and arbos/retryables/retryable.go (RetryableSubmissionFee,
// RetryableEscrowAddress).

/** The type of a transaction that makes a ticket, and of one that redeems it. */
export const ticketType = 0x69
export const redeemType = 0x68

/** What a ticket's transaction does to the native coin, besides what is called. */
export type TicketEffects = {
  fee: bigint
  /** What arrives before anything else: minted (without `from`), or from the escrow. */
  received: { from?: string; value: bigint }
  /** What the sender sends: to the escrow, or as the transaction says. */
  sent?: { to: string; value: bigint }
  /** What comes back afterwards, from the sender or (without `from`) from the fees. */
  refunds: readonly { from?: string; to: string; value: bigint }[]
  /** Whether calls are traced apart from these movements. */
  hasCalls: boolean
}

/** What a transaction of a ticket moves; undefined for others, and where a node leaves fields out. */
export function ticketEffects(
  transaction: ReadTransaction,
  receipt: RawReceipt,
  failed: boolean,
): TicketEffects | undefined {
  const type = typeOf(transaction)
  if (type === ticketType) return submitted(transaction, receipt, failed)
  if (type === redeemType) return redeemed(transaction, receipt, failed)
  return undefined
}

function submitted(
  transaction: ReadTransaction,
  receipt: RawReceipt,
  failed: boolean,
): TicketEffects | undefined {
  const { from, refundTo, retryData, maxSubmissionFee, l1BaseFee, gas } = transaction
  if (!refundTo || !maxSubmissionFee || !l1BaseFee || !gas) return undefined
  const deposit = quantityOf(transaction.depositValue)
  const value = quantityOf(transaction.retryValue)
  const most = quantityOf(maxSubmissionFee)
  const bytes = BigInt(Math.max(0, (retryData ?? '0x').length - 2) >> 1)
  const submission = quantityOf(l1BaseFee) * (1_400n + 6n * bytes)
  const pool = createPool(deposit)
  pool.take(value)
  const withheld = pool.take(submission)
  const sent = { to: escrowOf(transaction.hash), value }
  const received = { value: deposit }
  const refund = (amount: bigint) => ({ from, to: refundTo, value: amount })
  if (failed) {
    // The escrow could not be funded: fees go back as far as the deposit paid them. With a deposit below the
    // largest fee it may also have ended before; then nothing was taken.
    const back = deposit < most ? 0n : withheld + pool.take(most - submission)
    return { fee: 0n, received, sent, refunds: [refund(back)], hasCalls: false }
  }
  const refunded = pool.take(most - submission)
  const price = quantityOf(receipt.effectiveGasPrice ?? transaction.gasPrice)
  const cost = quantityOf(receipt.gasUsed) * price
  const largest = quantityOf(transaction.maxFeePerGas) * quantityOf(gas)
  // No gas is used where no redeem is scheduled; all that was meant for it goes back.
  pool.take(cost)
  const gasRefund = pool.take(largest > cost ? largest - cost : 0n)
  const refunds = [refund(refunded), refund(gasRefund)]
  return { fee: submission + cost, received, sent, refunds, hasCalls: false }
}

function redeemed(
  transaction: ReadTransaction,
  receipt: RawReceipt,
  failed: boolean,
): TicketEffects | undefined {
  const { from, refundTo, ticketId, maxRefund, submissionFeeRefund, gas } = transaction
  if (!refundTo || !ticketId || !maxRefund || !submissionFeeRefund || !gas) return undefined
  const price = quantityOf(receipt.effectiveGasPrice ?? transaction.gasPrice)
  const gasUsed = quantityOf(receipt.gasUsed)
  const unused = (quantityOf(gas) - gasUsed) * price
  const submission = quantityOf(submissionFeeRefund)
  const pool = createPool(quantityOf(maxRefund))
  const paid = pool.take(submission)
  pool.take(gasUsed * price)
  const back = pool.take(unused)
  const refunds = [
    { to: refundTo, value: (failed ? 0n : paid) + back },
    { to: from, value: (failed ? 0n : submission - paid) + unused - back },
  ]
  // After a failure the value is in the escrow again.
  const value = failed ? 0n : quantityOf(transaction.value)
  return { fee: 0n, received: { from: escrowOf(ticketId), value }, refunds, hasCalls: true }
}

/** What is left of a deposit: refunds never exceed it. */
function createPool(left: bigint): { take(amount: bigint): bigint } {
  return {
    take: (amount) => {
      const taken = amount < left ? amount : left
      left -= taken
      return taken
    },
  }
}

const escrowOf = (ticketId: string): string => {
  const bytes = Buffer.concat([
    Buffer.from('retryable escrow'),
    Buffer.from(ticketId.slice(2), 'hex'),
  ])
  return `0x${hash('keccak-256', bytes, 'hex').slice(-40)}`
}
