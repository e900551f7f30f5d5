import { quantityOf, type RawReceipt, type RawTransaction } from './raw.ts'

/** The type of a deposit on OP-style chains: paid for on the other chain. */
export const depositType = '0x7e'

/** Whether a transaction came from the other chain. */
export const isDeposit = ({ type }: RawTransaction): boolean => type?.toLowerCase() === depositType

/** What the sender of a transaction paid for it, a rollup's and a blob's fees included. */
export function feeOf(transaction: RawTransaction, receipt: RawReceipt): bigint {
  if (isDeposit(transaction)) return 0n
  const gasUsed = quantityOf(receipt.gasUsed)
  const price = quantityOf(receipt.effectiveGasPrice ?? transaction.gasPrice)
  const blobs = quantityOf(receipt.blobGasUsed) * quantityOf(receipt.blobGasPrice)
  return gasUsed * price + blobs + quantityOf(receipt.l1Fee) + operatorFeeOf(receipt, gasUsed)
}

/** Isthmus: the receipt has the scalars, seldom the sum. */
function operatorFeeOf(receipt: RawReceipt, gasUsed: bigint): bigint {
  if (receipt.operatorFee !== undefined) return quantityOf(receipt.operatorFee)
  const scaled = (gasUsed * quantityOf(receipt.operatorFeeScalar)) / 1_000_000n
  return scaled + quantityOf(receipt.operatorFeeConstant)
}
