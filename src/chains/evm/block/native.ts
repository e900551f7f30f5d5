import { quantityOf, type RawReceipt, type ReadTransaction } from '../codec/raw.ts'
import { feeOf, isDeposit, mintOf } from './fees.ts'
import type { Callees, NamedAddresses } from './names.ts'
import type { InternalTransfer } from './traces.ts'

/** A movement of the native coin at its place in the transaction, between numbers of addresses. */
export type NativeMovement = {
  place: number
  from: number
  to: number
  value: bigint
  failed: boolean
}

/** What a transaction does to the native coin. */
export type NativeEffects = {
  /** Pays the fee, and so has another balance even where nothing moves. */
  sender: number
  fee: bigint
  nonce: string | undefined
  failed: boolean
  movements: readonly NativeMovement[]
  /** What was called, where nothing was sent along: a number of the callees, or one of the two below. */
  callee: number
}

/** Every transaction has that many places, so that its movements do not depend on those before it. */
export const placesPerTransaction: number = 2 ** 32

/** Where no address is. */
export const noParty = -1
/** The callee of a transaction that has another record of its sender: it sent coin, or it failed. */
export const noCallee = -2
const none: readonly never[] = []
const mintPlace = 0
/** The place of the value that a transaction sends. */
export const valuePlace = 1
/** The first place of the logs. */
export const logPlace = 2
/** The first place of traced movements: far behind the logs, so that a trace changes no other place. */
export const internalPlace: number = 2 ** 31

/** Reads the native side of a transaction. */
export function nativeEffects(
  transaction: ReadTransaction,
  receipt: RawReceipt,
  internal: readonly InternalTransfer[],
  addresses: NamedAddresses,
  callees: Callees,
): NativeEffects {
  const { status } = receipt
  const failed = status !== undefined && status !== null && quantityOf(status) === 0n
  const sender = addresses.add(transaction.from)
  const value = quantityOf(transaction.value)
  const target = transaction.to ?? receipt.contractAddress
  return {
    sender,
    fee: feeOf(transaction, receipt),
    nonce: isDeposit(transaction) ? receipt.depositNonce : transaction.nonce,
    failed,
    movements: movementsOf(),
    callee: value > 0n || failed ? noCallee : target ? callees.add(target) : noParty,
  }

  function movementsOf(): readonly NativeMovement[] {
    const mint = mintOf(transaction)
    if (value === 0n && mint === 0n && !failed && internal.length === 0) return none
    const to = target ? addresses.add(target) : noParty
    const movements: NativeMovement[] = []
    // It stays even where the deposit fails.
    if (mint > 0n)
      movements.push({ place: mintPlace, from: noParty, to: sender, value: mint, failed: false })
    // A failed one is of interest to its sender whatever it would have moved.
    if (value > 0n || failed) movements.push({ place: valuePlace, from: sender, to, value, failed })
    for (const [index, moved] of (failed ? none : internal).entries())
      movements.push({
        place: internalPlace + index,
        from: addresses.add(moved.from),
        to: addresses.add(moved.to),
        value: moved.value,
        failed: false,
      })
    return movements
  }
}
