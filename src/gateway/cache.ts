import type { RawJson } from '../chains/upstream/pool-types.ts'
import { createByteLog, type Kept } from './byte-log.ts'
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

type Entry = Kept & { number: number; hash: string }

/** Makes a cache of at most that many bytes. */
export function createAnswerCache({ maxBytes }: { maxBytes: number }): AnswerCache {
  const entries = new Map<string, Entry>()
  // The keys by height while their block may still leave the chain.
  const unsettled = new Map<number, Set<string>>()

  const forget = ({ key, number }: Entry) => {
    entries.delete(key)
    const keys = unsettled.get(number)
    if (keys?.delete(key) && keys.size === 0) unsettled.delete(number)
  }
  const texts = createByteLog<Entry>({
    maxBytes,
    isKept: (entry) => entries.get(entry.key) === entry,
    onGone: forget,
  })

  const settle = (final: number) => {
    for (const number of unsettled.keys()) if (number <= final) unsettled.delete(number)
  }

  return {
    find(key, view) {
      const entry = entries.get(key)
      if (entry === undefined) return undefined
      const { number, hash } = entry
      if (number > view.final() && view.hashAt(number) !== hash) return undefined
      return { result: texts.read(entry), number, hash }
    },
    keep(key, { result, number, hash }, view) {
      const old = entries.get(key)
      if (old) forget(old)
      const place = { chunk: undefined, at: 0, length: 0, isWanted: false, text: undefined }
      const entry: Entry = { key, number, hash, ...place }
      if (!texts.put(entry, result)) return
      entries.set(key, entry)
      const final = view.final()
      if (number <= final) return
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
        texts.clear()
        return
      }
      for (const [number, keys] of unsettled)
        if (number > above) for (const key of [...keys]) forget(entries.get(key) as Entry)
    },
    bytes: texts.bytes,
    size: () => entries.size,
  }
}
