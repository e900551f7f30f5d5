import { randomInt } from 'node:crypto'

/** A text that stands for bytes in a Map or Set: one character per byte, half the size of hex. */
export const keyOf = (bytes: Uint8Array): string =>
  (Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes)).toString('latin1')

/** Values by byte strings, in the order of their first appearance. */
export type ByteMap<value> = {
  get(bytes: Uint8Array): value | undefined
  set(bytes: Uint8Array, value: value): void
  readonly size: number
  values(): readonly value[]
}

// Addresses are chosen by strangers, who must not know which of them meet in one slot.
const seed = randomInt(2 ** 31)

function hashOf(bytes: Uint8Array): number {
  let hash = seed
  for (let index = 0; index < bytes.length; index++)
    hash = Math.imul(hash ^ bytes[index]!, 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d)
  return (hash ^ (hash >>> 13)) >>> 0
}

function isSame(one: Uint8Array, other: Uint8Array): boolean {
  if (one.length !== other.length) return false
  for (let index = one.length - 1; index >= 0; index--)
    if (one[index] !== other[index]) return false
  return true
}

/** Makes a map of byte strings: twice as fast as one of texts, which would have to be made first. */
export function createByteMap<value>(): ByteMap<value> {
  const keys: Uint8Array[] = []
  const values: value[] = []
  // Places in the lists above, counted from one; always half empty at least.
  let slots = new Int32Array(16)

  const slotOf = (bytes: Uint8Array): number => {
    const mask = slots.length - 1
    let slot = hashOf(bytes) & mask
    while (slots[slot] !== 0 && !isSame(keys[slots[slot]! - 1]!, bytes)) slot = (slot + 1) & mask
    return slot
  }
  const grow = (): void => {
    slots = new Int32Array(slots.length * 4)
    for (let index = 0; index < keys.length; index++) slots[slotOf(keys[index]!)] = index + 1
  }

  return {
    get: (bytes) => {
      const place = slots[slotOf(bytes)]!
      return place === 0 ? undefined : values[place - 1]
    },
    set: (bytes, value) => {
      let slot = slotOf(bytes)
      const place = slots[slot]!
      if (place !== 0) {
        values[place - 1] = value
        return
      }
      if (2 * keys.length >= slots.length) {
        grow()
        slot = slotOf(bytes)
      }
      keys.push(bytes)
      slots[slot] = values.push(value)
    },
    get size() {
      return keys.length
    },
    values: () => values,
  }
}

/** Whether these bytes are among some others. */
export type ByteSet = { has(bytes: Uint8Array): boolean; readonly size: number }

/** A set of byte strings. */
export const createByteSet = (items: Iterable<Uint8Array>): ByteSet => {
  const known = createByteMap<true>()
  for (const item of items) known.set(item, true)
  return { has: (bytes) => known.get(bytes) === true, size: known.size }
}

/** The same byte strings, each once, in the order of their first appearance. */
export const distinctBytes = <bytes extends Uint8Array>(items: Iterable<bytes>): bytes[] => {
  const seen = createByteMap<bytes>()
  for (const item of items) if (seen.get(item) === undefined) seen.set(item, item)
  return [...seen.values()]
}

/** Groups by bytes. */
export const groupByBytes = <item>(
  items: readonly item[],
  bytesOf: (item: item) => Uint8Array,
): ((bytes: Uint8Array) => readonly item[]) => {
  const groups = createByteMap<item[]>()
  for (const item of items) {
    const group = groups.get(bytesOf(item))
    if (group) group.push(item)
    else groups.set(bytesOf(item), [item])
  }
  return (bytes) => groups.get(bytes) ?? none
}

const none: readonly never[] = []
