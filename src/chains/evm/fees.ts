import { quantityOf, type RawReceipt, type ReadTransaction, typeOf } from './raw.ts'

/** The type of a deposit on OP-style chains: paid for on the other chain. */
export const depositType = 0x7e

/** Whether a transaction came from the other chain. */
export const isDeposit = (transaction: ReadTransaction): boolean =>
  typeOf(transaction) === depositType

/** What the sender of a transaction paid for it, a rollup's and a blob's fees included. */
export function feeOf(transaction: ReadTransaction, receipt: RawReceipt): bigint {
  if (isDeposit(transaction)) return 0n
  const gasUsed = quantityOf(receipt.gasUsed)
  const price = quantityOf(receipt.effectiveGasPrice ?? transaction.gasPrice)
  let fee = gasUsed * price
  if (receipt.blobGasUsed) fee += quantityOf(receipt.blobGasUsed) * quantityOf(receipt.blobGasPrice)
  if (receipt.l1Fee) fee += quantityOf(receipt.l1Fee)
  return fee + operatorFeeOf(receipt, gasUsed)
}

/** Isthmus: the receipt has the scalars, seldom the sum. */
function operatorFeeOf(receipt: RawReceipt, gasUsed: bigint): bigint {
  if (receipt.operatorFee !== undefined) return quantityOf(receipt.operatorFee)
  if (!receipt.operatorFeeScalar && !receipt.operatorFeeConstant) return 0n
  const scaled = (gasUsed * quantityOf(receipt.operatorFeeScalar)) / 1_000_000n
  return scaled + quantityOf(receipt.operatorFeeConstant)
}
