import { feeOf, isDeposit } from './fees.ts'
import { bytesOf, quantityOf, type RawReceipt, type RawTransaction } from './raw.ts'
import type { InternalTransfer } from './traces.ts'

/** A movement of the native coin at its place in the transaction. */
export type NativeMovement = {
  place: number
  from: Buffer
  to: Buffer
  value: bigint
  failed: boolean
}

/** What a transaction does to the native coin. */
export type NativeEffects = {
  /** Made when it is asked for. */
  hash(): Buffer
  sender: Buffer
  fee: bigint
  nonce: string
  failed: boolean
  movements: readonly NativeMovement[]
  /** Those whose balance may change without a movement. */
  touched: readonly Buffer[]
}

const nobody = Buffer.alloc(0)
const mintPlace = 0
const valuePlace = 1
/** The first place of the logs. */
export const logPlace = 2
// Far behind the logs: whether a block could be traced changes no other place.
const internalPlace = 2 ** 31

/** Reads the native side of a transaction. */
export function nativeEffects(
  transaction: RawTransaction,
  receipt: RawReceipt,
  internal: readonly InternalTransfer[],
  hash: () => Buffer,
): NativeEffects {
  const sender = bytesOf(transaction.from)
  const target = transaction.to ?? receipt.contractAddress
  const to = target ? bytesOf(target) : nobody
  const value = quantityOf(transaction.value)
  const failed = receipt.status !== undefined && quantityOf(receipt.status) === 0n
  const movements: NativeMovement[] = []
  const mint = isDeposit(transaction) ? quantityOf(transaction.mint) : 0n
  // It stays even where the deposit fails.
  if (mint > 0n)
    movements.push({ place: mintPlace, from: nobody, to: sender, value: mint, failed: false })
  // A failed one is of interest to its sender whatever it would have moved.
  if (value > 0n || failed) movements.push({ place: valuePlace, from: sender, to, value, failed })
  for (const [index, moved] of (failed ? [] : internal).entries())
    movements.push({
      place: internalPlace + index,
      from: bytesOf(moved.from),
      to: bytesOf(moved.to),
      value: moved.value,
      failed: false,
    })
  const nonce = isDeposit(transaction) ? receipt.depositNonce : transaction.nonce
  return {
    hash,
    sender,
    fee: feeOf(transaction, receipt),
    nonce: quantityOf(nonce).toString(),
    failed,
    movements,
    touched: [sender],
  }
}
