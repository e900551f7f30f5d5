import type { Slice } from '@ton/core'

/** What is used of how a transaction ran. */
export type Outcome = {
  /** The value went back to where it came from. */
  isReturned: boolean
  /** Its contract ran to the end and all its actions were done. */
  isDone: boolean
}

const nothing: Outcome = { isReturned: false, isDone: false }

/**
 * Reads the description of a transaction. `@ton/core` refuses a transaction of a suspended account, whose
 * skipped compute phase has a reason that it does not know; here only what is used is read.
 */
export function readOutcome(slice: Slice): Outcome {
  // Other kinds (storage, tick-tock, split, merge) return no value and carry no order.
  if (slice.loadUint(4) !== 0) return nothing
  slice.skip(1)
  if (slice.loadBit()) skipStorage(slice)
  if (slice.loadBit()) skipCredit(slice)
  skipCompute(slice)
  const action = slice.loadMaybeRef()
  const isAborted = slice.loadBit()
  // A bounce without enough coins is 00 or 01, one that was sent begins with 1.
  const isReturned = slice.loadBit() && slice.loadBit()
  return {
    isReturned,
    isDone: !isAborted && (action === null || action.beginParse().loadBit()),
  }
}

/** Skips amounts of all currencies; gives that of the coin. */
export function loadCurrencies(slice: Slice): bigint {
  const coins = slice.loadCoins()
  slice.loadMaybeRef()
  return coins
}

function skipStorage(slice: Slice): void {
  slice.loadCoins()
  slice.loadMaybeCoins()
  if (slice.loadBit()) slice.skip(1)
}

function skipCredit(slice: Slice): void {
  slice.loadMaybeCoins()
  loadCurrencies(slice)
}

function skipCompute(slice: Slice): void {
  if (!slice.loadBit()) {
    // No state, bad state, no gas; or with a third bit: suspended.
    if (slice.loadUint(2) === 0b11 && slice.loadBit())
      throw new Error('the compute phase was skipped for an unknown reason')
    return
  }
  slice.skip(3)
  slice.loadCoins()
  slice.loadRef()
}
