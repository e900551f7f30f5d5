import { hash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { LogKeys } from '../rpc/topics.ts'

/** Compares logs with the bloom of their block's header. */
export type BloomCheck = {
  /** The bloom is that of these logs and of no others. */
  fits(bloom: string, logs: readonly LogKeys[]): boolean
  /** No log that the bloom knows of is missing; there may be more. */
  covers(bloom: string, logs: readonly LogKeys[]): boolean
}

const noLogs = /^0x0*$/

/** Whether the header has a bloom; without one nothing can be compared. */
export const isBloom = (bloom: string): boolean => bloom.length === 514

/** Whether the header says that its block has no logs. */
export const isEmptyBloom = (bloom: string): boolean => noLogs.test(bloom)

/**
 * Makes the check. A header's bloom is that of all its logs and of nothing else, so that it tells
 * whether any of them is missing. The same contracts and events come again in every block, so that
 * the bits of the last ones are kept.
 */
export function createBloomCheck(maxKept = 50_000): BloomCheck {
  const kept = new LRUCache<string, number>({ max: maxKept })

  /** The three bits of an item, packed into one number. */
  const bitsOf = (item: string): number => {
    const known = kept.get(item)
    if (known !== undefined) return known
    const digest = hash('keccak-256', Buffer.from(item.slice(2), 'hex'), 'buffer')
    const bit = (at: number) => digest.readUInt16BE(at) & 2047
    const bits = bit(0) * 2 ** 22 + bit(2) * 2 ** 11 + bit(4)
    kept.set(item, bits)
    return bits
  }

  const bloomOf = (logs: readonly LogKeys[]): Buffer => {
    const own = Buffer.alloc(256)
    const set = (bit: number) => {
      own[255 - (bit >> 3)]! |= 1 << (bit & 7)
    }
    const seen = new Set<string>()
    for (const { address, topics } of logs) {
      seen.add(address)
      for (const topic of topics) seen.add(topic)
    }
    for (const item of seen) {
      const bits = bitsOf(item)
      set(Math.floor(bits / 2 ** 22))
      set((bits >>> 11) & 2047)
      set(bits & 2047)
    }
    return own
  }
  const read = (bloom: string): Buffer | undefined =>
    isBloom(bloom) ? Buffer.from(bloom.slice(2), 'hex') : undefined

  return {
    fits: (bloom, logs) => read(bloom)?.equals(bloomOf(logs)) === true,
    covers: (bloom, logs) => {
      const known = read(bloom)
      if (!known) return false
      const own = bloomOf(logs)
      return known.every((byte, at) => (byte & ~(own[at] as number)) === 0)
    },
  }
}
