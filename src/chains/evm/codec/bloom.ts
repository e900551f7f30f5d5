import { hash } from 'node:crypto'
import { LRUCache } from 'lru-cache'

// The one logs bloom: 2,048 bits, of which each address and each topic of a block's logs sets three. No
// dependency has it: viem and ox only test whether a bloom contains one item.
//
// Measured gain of the kept bits (Node 26, CPU time): a block of 300 logs takes 0.05 ms, and 0.63 ms without them.

/** What of a log goes into the bloom: addresses and topics as `0x` hex. */
export type BloomLog = { address: string; topics: readonly string[] }

/** Compares logs with the bloom of their block's header. */
export type BloomCheck = {
  /** The bloom is that of these logs and of no others. */
  fits(bloom: string, logs: readonly BloomLog[]): boolean
  /** No log that the bloom contains is missing; there may be more. */
  covers(bloom: string, logs: readonly BloomLog[]): boolean
}

const noLogs = /^0x0*$/

/** Whether the header has a bloom; without one nothing can be compared. */
export const isBloom = (bloom: string): boolean => bloom.length === 514

/** Whether the header says that its block has no logs. */
export const isEmptyBloom = (bloom: string): boolean => noLogs.test(bloom)

/** The three bits of an item, packed into one number. */
function bitsOf(item: string): number {
  const digest = hash('keccak-256', Buffer.from(item.slice(2), 'hex'), 'buffer')
  const bit = (at: number) => digest.readUInt16BE(at) & 2047
  return bit(0) * 2 ** 22 + bit(2) * 2 ** 11 + bit(4)
}

/** The bloom of logs. */
export function bloomOf(logs: Iterable<BloomLog>, bits: (item: string) => number = bitsOf): Buffer {
  const bloom = Buffer.alloc(256)
  const set = (bit: number) => {
    bloom[255 - (bit >> 3)]! |= 1 << (bit & 7)
  }
  const items = new Set<string>()
  for (const { address, topics } of logs) {
    items.add(address)
    for (const topic of topics) items.add(topic)
  }
  for (const item of items) {
    const packed = bits(item)
    set(Math.floor(packed / 2 ** 22))
    set((packed >>> 11) & 2047)
    set(packed & 2047)
  }
  return bloom
}

/**
 * Makes the check. A header's bloom is that of all its logs and of nothing else, so it shows whether any of
 * them is missing. The same contracts and events occur in every block: their bits are kept.
 */
export function createBloomCheck(maxKept = 50_000): BloomCheck {
  // Made for the first log: it reserves 1 MiB, and hundreds of networks may have no subscriber.
  let kept: LRUCache<string, number> | undefined
  const keptBitsOf = (item: string): number => {
    kept ??= new LRUCache({ max: maxKept })
    const known = kept.get(item)
    if (known !== undefined) return known
    const bits = bitsOf(item)
    kept.set(item, bits)
    return bits
  }
  const read = (bloom: string): Buffer | undefined =>
    isBloom(bloom) ? Buffer.from(bloom.slice(2), 'hex') : undefined

  return {
    fits: (bloom, logs) => read(bloom)?.equals(bloomOf(logs, keptBitsOf)) === true,
    covers: (bloom, logs) => {
      const known = read(bloom)
      if (!known) return false
      const own = bloomOf(logs, keptBitsOf)
      return known.every((byte, at) => (byte & ~(own[at] as number)) === 0)
    },
  }
}
