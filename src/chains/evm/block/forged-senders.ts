import type { ReadBlock } from '../codec/header.ts'
import { loadRecoverSigner, type RecoverSigner } from '../codec/signer.ts'

/** Transactions whose sender a node made up. */
export type ForgedSenders = {
  add(number: number, transaction: number): void
  /** Loads what judging needs, where the block has suspects. */
  prepare(number: number): Promise<void>
  /** Whether the claimed senders of suspect transactions are their signers. */
  areSigned(number: number, block: ReadBlock): boolean
}

// Each is one lie that was found out; a node that lies more is one to remove.
const maxBlocks = 1_000

/** Remembers transactions with a false sender, so that no node gives the same one again. */
export function createForgedSenders(): ForgedSenders {
  const suspects = new Map<number, Set<number>>()
  let recover: RecoverSigner | undefined
  return {
    add: (number, transaction) => {
      const found = suspects.get(number) ?? new Set()
      found.add(transaction)
      suspects.delete(number)
      suspects.set(number, found)
      if (suspects.size > maxBlocks) suspects.delete(suspects.keys().next().value!)
    },
    prepare: async (number) => {
      if (suspects.has(number)) recover ??= await loadRecoverSigner()
    },
    areSigned: (number, { transactions, encodedOf }) => {
      for (const index of suspects.get(number) ?? []) {
        const encoded = index < transactions.length ? encodedOf(index) : undefined
        const signer = encoded && recover?.(encoded)
        if (signer !== undefined && signer !== transactions[index]!.from.toLowerCase()) return false
      }
      return true
    },
  }
}
