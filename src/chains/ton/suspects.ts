import { keyOf } from '../../lib/bytes.ts'

/** Tokens that are read apart for a while, because no node could read one of their accounts. */
export type Suspects = {
  add(contract_address: Uint8Array, block_number: number): void
  has(contract_address: Uint8Array): boolean
}

// A token may get better. In masterchain blocks.
const lookAgainAfter = 1_000
const mostSuspects = 10_000

/** None at first; the oldest is forgotten when there are too many. */
export function createSuspects(): Suspects {
  const until = new Map<string, number>()
  let newest = 0
  return {
    add: (contract_address, block_number) => {
      newest = Math.max(newest, block_number)
      const key = keyOf(contract_address)
      until.delete(key)
      until.set(key, block_number + lookAgainAfter)
      if (until.size > mostSuspects) until.delete(until.keys().next().value!)
    },
    has: (contract_address) => {
      if (until.size === 0) return false
      const end = until.get(keyOf(contract_address))
      return end !== undefined && newest < end
    },
  }
}
