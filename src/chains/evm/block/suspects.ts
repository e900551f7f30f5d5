import { keyOf } from '../../../lib/bytes.ts'

/** Contracts that are read apart for a while, because they fail or spoil what is read with them. */
export type Suspects = {
  add(contract_address: Uint8Array, block_number: number): void
  has(contract_address: Uint8Array): boolean
}

// A token may get better.
const lookAgainAfter = 1_000
const mostSuspects = 10_000

/** None at first; the oldest is forgotten when there are too many. */
export function createSuspects(): Suspects {
  const until = new Map<string, number>()
  let newest = 0
  return {
    add: (contract_address, block_number) => {
      if (contract_address.length === 0) return
      newest = Math.max(newest, block_number)
      const key = keyOf(contract_address)
      until.delete(key)
      until.set(key, block_number + lookAgainAfter)
      if (until.size > mostSuspects) until.delete(until.keys().next().value!)
    },
    has: (contract_address) => {
      if (until.size === 0 || contract_address.length === 0) return false
      const end = until.get(keyOf(contract_address))
      return end !== undefined && newest < end
    },
  }
}
