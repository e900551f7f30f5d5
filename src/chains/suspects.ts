import { keyOf } from '../lib/bytes.ts'

/** Contracts that are read apart for a while, because they fail or spoil what is read with them. */
export type Suspects = {
  add(contract_address: Uint8Array, block_number: number): void
  /** Whether it is one still at this block: of a reading, or the newest one. */
  has(contract_address: Uint8Array, block_number: number): boolean
}

// A token may get better.
const lookAgainAfter = 1_000
const mostSuspects = 10_000

/** None at first; the oldest is forgotten when there are too many. */
export function createSuspects({ blocks = lookAgainAfter } = {}): Suspects {
  const until = new Map<string, number>()
  return {
    add: (contract_address, block_number) => {
      // The coin has no contract.
      if (contract_address.length === 0) return
      const key = keyOf(contract_address)
      until.delete(key)
      until.set(key, block_number + blocks)
      if (until.size > mostSuspects) until.delete(until.keys().next().value!)
    },
    has: (contract_address, block_number) => {
      if (until.size === 0 || contract_address.length === 0) return false
      const end = until.get(keyOf(contract_address))
      return end !== undefined && block_number < end
    },
  }
}
