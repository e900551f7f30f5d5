import { LRUCache } from 'lru-cache'
import type { RawJson } from '../chains/upstream/pool-types.ts'
import type { ChainView } from './chain-view.ts'

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
  find(key: string, view: ChainView): CacheEntry | undefined
  keep(key: string, entry: CacheEntry, view: ChainView): void
  /** Forgets all that depends on blocks above this one; -1 forgets everything. */
  drop(above: number): void
  bytes(): number
  size(): number
}

/** What an entry costs beside its text: the key and value objects and their place in the maps. */
const overheadBytes = 250

// V8 keeps the whole text alive of which another is a part, and answers are parts of batches.
const detached = (text: RawJson): RawJson => Buffer.from(text, 'latin1').toString('latin1')

/** Makes a cache of at most that many bytes. */
export function createAnswerCache({ maxBytes }: { maxBytes: number }): AnswerCache {
  // The keys by height while their block may still leave the chain.
  const unsettled = new Map<number, Set<string>>()

  const forget = (entry: CacheEntry, key: string) => {
    const keys = unsettled.get(entry.number)
    if (keys?.delete(key) && keys.size === 0) unsettled.delete(entry.number)
  }
  const entries = new LRUCache<string, CacheEntry>({
    maxSize: maxBytes,
    // One giant answer must not push out everything else.
    maxEntrySize: Math.max(1, Math.floor(maxBytes / 16)),
    sizeCalculation: ({ result }, key) => result.length + key.length + overheadBytes,
    dispose: forget,
  })

  const settle = (final: number) => {
    for (const number of unsettled.keys()) if (number <= final) unsettled.delete(number)
  }

  return {
    find(key, view) {
      const entry = entries.get(key)
      if (entry === undefined) return undefined
      const { number, hash } = entry
      if (number <= view.final() || view.hashAt(number) === hash) return entry
      return undefined
    },
    keep(key, entry, view) {
      const { number } = entry
      const final = view.final()
      entries.set(key, { ...entry, result: detached(entry.result) })
      if (number <= final || !entries.has(key)) return
      const keys = unsettled.get(number)
      if (keys) keys.add(key)
      else {
        settle(final)
        unsettled.set(number, new Set([key]))
      }
    },
    drop(above) {
      if (above < 0) {
        entries.clear()
        unsettled.clear()
        return
      }
      for (const [number, keys] of unsettled)
        if (number > above) for (const key of [...keys]) entries.delete(key)
    },
    bytes: () => entries.calculatedSize,
    size: () => entries.size,
  }
}
