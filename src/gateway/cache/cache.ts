// Answers of nodes that are kept, equal calls that share one request, and how far each key has seen the chain.
// It uses the canonical chain and the pool. Memory is bounded and outside of the heap. An entry is removed with
// its block, an error is never kept, and a key is not shown an older state than before.

import type { Canonical } from '../../chains/evm/canonical/canonical.ts'
import type { RawJson } from '../../chains/evm/pool/pool-types.ts'
import { createRecordRing } from './record-ring.ts'

/** What the cache has to know of the canonical chain. */
export type BranchView = Pick<Canonical, 'final' | 'hashAt'>

/** A kept answer and the block that it depends on. */
export type CacheEntry = {
  result: RawJson
  /** -1 when it depends on no block. */
  number: number
  /** Empty for a block that was final already. */
  hash: string
}

/** Answers of one network, bounded in bytes. */
export type AnswerCache = {
  /** A kept answer whose block is in the chain. */
  find(key: string, view: BranchView): CacheEntry | undefined
  keep(key: string, entry: CacheEntry, view: BranchView): void
  /** Forgets all that depends on blocks above this one; -1 forgets everything. */
  drop(above: number): void
  /** Forgets everything and gives the memory back. */
  release(): void
  bytes(): number
  size(): number
}

/** The answers under longer keys are not kept: 4 MiB of call data took 8 ms to hash and to copy. */
const maxKeyLength = 65_536

/** Makes a cache of at most that many bytes. */
export function createAnswerCache({ maxBytes }: { maxBytes: number }): AnswerCache {
  const ring = createRecordRing({ maxBytes })
  // Where the first record of each block stands that may still leave the chain.
  const unsettled = new Map<number, number>()

  const settle = (final: number) => {
    for (const number of unsettled.keys()) if (number <= final) unsettled.delete(number)
  }

  return {
    find(key, view) {
      if (key.length > maxKeyLength) return undefined
      const place = ring.find(key)
      if (place < 0) return undefined
      const number = ring.numberAt(place)
      const hash = ring.hashAt(place)
      if (number > view.final() && view.hashAt(number) !== hash) return undefined
      return { result: ring.readAt(place), number, hash }
    },
    keep(key, { result, number, hash }, view) {
      if (key.length > maxKeyLength) return
      const final = view.final()
      if (number > final && !unsettled.has(number)) {
        settle(final)
        unsettled.set(number, ring.written())
      }
      ring.put({ key, number, hash, text: result })
    },
    drop(above) {
      if (above < 0) {
        unsettled.clear()
        ring.clear()
        return
      }
      let since = Number.POSITIVE_INFINITY
      for (const [number, first] of unsettled) {
        if (number <= above) continue
        since = Math.min(since, first)
        unsettled.delete(number)
      }
      ring.drop(above, since)
    },
    release() {
      unsettled.clear()
      ring.release()
    },
    bytes: ring.bytes,
    size: ring.size,
  }
}
