// Byte strings as keys. `lib` has small tools without knowledge of the domain: it uses Node and no other
// folder, holds no state and is tested without servers.

import { randomInt } from 'node:crypto'

/** A text that stands for bytes in a Map or Set: one character per byte, half the size of hex. */
export const keyOf = (bytes: Uint8Array): string =>
  (Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes)).toString('latin1')

/** Values by byte strings, in the order of their first appearance. */
export type ByteMap<value> = {
  get(bytes: Uint8Array): value | undefined
  set(bytes: Uint8Array, value: value): void
  /** The value that there is, or else this one, which is there from now on. */
  getOrSet(bytes: Uint8Array, value: value): value
  readonly size: number
  values(): readonly value[]
}

// Third parties choose addresses: a seed keeps them from choosing ones that collide.
const seed = randomInt(2 ** 31)

const stirred = (hash: number, word: number): number => {
  const mixed = Math.imul(hash ^ word, 0x01000193)
  return mixed ^ (mixed >>> 15)
}

const finished = (hash: number): number => {
  const mixed = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d)
  return mixed ^ (mixed >>> 13)
}

// Four bytes at once: each step has to wait for the one before it.
function hashOf(bytes: Uint8Array): number {
  const { length } = bytes
  let hash = seed
  let at = 0
  for (; at + 4 <= length; at += 4) {
    const word =
      bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24)
    hash = stirred(hash, word)
  }
  for (; at < length; at++) hash = stirred(hash, bytes[at]!)
  return finished(hash)
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
  const hashes: number[] = []
  const values: value[] = []
  // Places in the lists above, counted from one; always half empty at least.
  let slots = new Int32Array(16)

  const slotOf = (bytes: Uint8Array, hash: number): number => {
    const mask = slots.length - 1
    let slot = hash & mask
    for (;;) {
      const place = slots[slot]!
      if (place === 0 || (hashes[place - 1] === hash && isSame(keys[place - 1]!, bytes)))
        return slot
      slot = (slot + 1) & mask
    }
  }
  const grow = (): void => {
    // Called at half of the slots. Four times as many keep the probes short, and growing stays rare.
    slots = new Int32Array(slots.length * 4)
    const mask = slots.length - 1
    for (let index = 0; index < hashes.length; index++) {
      let slot = hashes[index]! & mask
      while (slots[slot] !== 0) slot = (slot + 1) & mask
      slots[slot] = index + 1
    }
  }
  const add = (bytes: Uint8Array, hash: number, slot: number, value: value): void => {
    keys.push(bytes)
    hashes.push(hash)
    slots[slot] = values.push(value)
    if (2 * keys.length > slots.length) grow()
  }

  return {
    get: (bytes) => {
      const place = slots[slotOf(bytes, hashOf(bytes))]!
      return place === 0 ? undefined : values[place - 1]
    },
    set: (bytes, value) => {
      const hash = hashOf(bytes)
      const slot = slotOf(bytes, hash)
      const place = slots[slot]!
      if (place === 0) add(bytes, hash, slot, value)
      else values[place - 1] = value
    },
    getOrSet: (bytes, value) => {
      const hash = hashOf(bytes)
      const slot = slotOf(bytes, hash)
      const place = slots[slot]!
      if (place !== 0) return values[place - 1]!
      add(bytes, hash, slot, value)
      return value
    },
    get size() {
      return keys.length
    },
    values: () => values,
  }
}

/** Pieces of bytes: each different one once, and which of them is at each place. */
export type Pieces = { distinct: readonly Buffer[]; at: Int32Array }

/** Cuts bytes, which have memory of their own, into pieces of a size that whole words of four make. */
export function cutBytes(bytes: Uint8Array<ArrayBuffer>, size: number): Pieces {
  const whole = Buffer.from(bytes.buffer)
  const words = new Int32Array(bytes.buffer)
  const step = size / 4
  const count = words.length / step
  const at = new Int32Array(count)
  const distinct: Buffer[] = []
  const firsts: number[] = []
  const slots = new Int32Array(2 ** Math.ceil(Math.log2(2 * count + 1)))
  for (let index = 0; index < count; index++) {
    const begin = index * step
    let slot = hashOfWords(words, begin, begin + step) & (slots.length - 1)
    let place = slots[slot]!
    while (place !== 0 && !areSame(words, firsts[place - 1]!, begin, step)) {
      slot = (slot + 1) & (slots.length - 1)
      place = slots[slot]!
    }
    if (place === 0) {
      firsts.push(begin)
      place = distinct.push(whole.subarray(index * size, (index + 1) * size))
      slots[slot] = place
    }
    at[index] = place - 1
  }
  return { distinct, at }
}

function hashOfWords(words: Int32Array, begin: number, end: number): number {
  let hash = seed
  for (let at = begin; at < end; at++) hash = stirred(hash, words[at]!)
  return finished(hash)
}

function areSame(words: Int32Array, one: number, other: number, count: number): boolean {
  for (let at = 0; at < count; at++) if (words[one + at] !== words[other + at]) return false
  return true
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
  for (const item of items) seen.getOrSet(item, item)
  return [...seen.values()]
}

/** Groups by bytes. */
export const groupByBytes = <item>(
  items: readonly item[],
  bytesOf: (item: item) => Uint8Array,
): ((bytes: Uint8Array) => readonly item[]) => {
  const groups = createByteMap<item[]>()
  for (const item of items) groups.getOrSet(bytesOf(item), []).push(item)
  return (bytes) => groups.get(bytes) ?? none
}

const none: readonly never[] = []
