import { constants } from 'node:buffer'
import { randomBytes } from 'node:crypto'
import type { RawJson } from '../../chains/evm/pool/pool-types.ts'

/** A text under a key, with the block that it depends on. All strings have one character per byte. */
export type KeptRecord = { key: string; number: number; hash: string; text: RawJson }

/** Records outside of the heap, bounded in bytes; the oldest go first, except for those that are read. */
export type RecordRing = {
  /** The place of the record under this key, good until the next change; -1 when there is none. */
  find(key: string): number
  numberAt(place: number): number
  hashAt(place: number): string
  /** The text, which is wanted from now on. */
  readAt(place: number): RawJson
  /** Keeps a record instead of any other under its key, unless it is too long to be kept at all. */
  put(record: KeptRecord): void
  /** Grows with all that is written: what comes later stands above this. */
  written(): number
  /** Forgets the records of blocks above this one, among those written since. */
  drop(above: number, since: number): void
  clear(): void
  /** Forgets everything and gives the memory back. */
  release(): void
  bytes(): number
  size(): number
}

// All places and lengths are in units of eight bytes. A record is four of them, then its key, its hash
// and its text, each from a whole unit on.
const unit = 8
const headerUnits = 4
// The words of the header.
const lengthAt = 0
const slotAt = 1
const keyAt = 2
const hashLengthAt = 3
const textLengthAt = 4
const wantedAt = 5
// The last of its units.
const numberUnit = 3

const ways = 8
const bytesPerSlot = 128

// `Buffer.write` costs 2 to 4 µs before its first byte, in a request of 60 µs; a loop over a key costs 0.1 µs.
const longestLoop = 512

/**
 * The last longer text that was read stays in the heap as well. Copied for every reader, 2 MB that 100 calls a second ask
 * for kept the collector busy.
 */
const largeText = 65_536
const none = { place: -1, text: '' as RawJson }

const unitsOf = (bytes: number): number => (bytes + unit - 1) >>> 3

const unitsOfRecord = ({ key, hash, text }: KeptRecord): number =>
  headerUnits + unitsOf(key.length) + unitsOf(hash.length) + unitsOf(text.length)

/** The hash of so many words. */
const mixed = (words: Int32Array, count: number, seed: number): number => {
  let value = seed
  for (let at = 0; at < count; at++) {
    value = Math.imul(value ^ (words[at] as number), 0x9e3779b1)
    value ^= value >>> 15
  }
  return Math.imul(value, 0x85ebca6b) ^ (value >>> 13)
}

/** Whether the record at a place has this key, which is laid out in words. */
const isKeyAt = (words: Int32Array, place: number, key: Int32Array, length: number): boolean => {
  if (words[place * 2 + keyAt] !== length) return false
  const from = (place + headerUnits) * 2
  for (let at = 0; at < unitsOf(length) * 2; at++) if (words[from + at] !== key[at]) return false
  return true
}

/**
 * Makes a ring of at most that many bytes. In the heap, keys and texts would be copied and marked by the
 * collections: that took a fifth of the time of a gateway that keeps what passes through, and its longest
 * pauses. A key finds its record through a table of sets of eight, so that keys made to fall into one set
 * only push out each other. Each process has its own: a ring in shared memory needs threads, which cost 7 µs more per
 * request than processes, where the hits that two caches lose cost 3 µs (docs/decisions/processes.md).
 */
export function createRecordRing({ maxBytes }: { maxBytes: number }): RecordRing {
  const sets = 2 ** Math.max(0, Math.floor(Math.log2(maxBytes / bytesPerSlot / ways)))
  const slots = sets * ways
  const size = Math.floor(Math.min(Math.max(0, maxBytes - slots * 8), constants.MAX_LENGTH) / unit)
  // One giant answer must not push out everything else.
  const longest = Math.floor(size / 16)
  const seed = randomBytes(4).readInt32LE()
  let prints = new Int32Array(0)
  /** One more than the place; 0 is for none. */
  let places = new Int32Array(0)
  let bytes = Buffer.alloc(0)
  let words = new Int32Array(0)
  let numbers = new Float64Array(0)
  let key = Buffer.allocUnsafeSlow(1_024)
  let keyWords = new Int32Array(key.buffer)
  let written = 0
  let used = 0
  let count = 0
  let lastLarge = none

  // When the first record comes: many networks keep nothing.
  const allocate = () => {
    prints = new Int32Array(slots)
    places = new Int32Array(slots)
    bytes = Buffer.allocUnsafeSlow(size * unit)
    words = new Int32Array(bytes.buffer)
    numbers = new Float64Array(bytes.buffer)
  }

  const wordAt = (place: number, word: number): number => words[place * 2 + word] as number

  /** Lays a key out for comparisons, and answers its hash. */
  const lay = (text: string): number => {
    const { length } = text
    const units = unitsOf(length)
    if (units * unit > key.length) {
      key = Buffer.allocUnsafeSlow(units * unit * 2)
      keyWords = new Int32Array(key.buffer)
    }
    keyWords[units * 2 - 1] = 0
    keyWords[units * 2 - 2] = 0
    if (length > longestLoop) key.write(text, 'latin1')
    else for (let at = 0; at < length; at++) key[at] = text.charCodeAt(at)
    return mixed(keyWords, units * 2, seed ^ length)
  }

  /** The slot of the key that is laid out. */
  const slotOf = (print: number, length: number): number => {
    const first = (print & (sets - 1)) * ways
    for (let slot = first; slot < first + ways; slot++) {
      const place = (places[slot] as number) - 1
      if (place >= 0 && prints[slot] === print && isKeyAt(words, place, keyWords, length))
        return slot
    }
    return -1
  }

  const forget = (slot: number) => {
    if (places[slot] === lastLarge.place + 1) lastLarge = none
    words[((places[slot] as number) - 1) * 2 + slotAt] = -1
    places[slot] = 0
    count--
  }

  /** A slot of the set that is free or made free: that of the oldest record, if it can be an unwanted one. */
  const takeSlot = (print: number): number => {
    const first = (print & (sets - 1)) * ways
    const head = written % size
    let oldest = first
    let oldestAge = -1
    for (let slot = first; slot < first + ways; slot++) {
      const place = (places[slot] as number) - 1
      if (place < 0) return slot
      const isWanted = wordAt(place, wantedAt) === 1
      const age = ((head - place + size) % size) + (isWanted ? 0 : size)
      if (age <= oldestAge) continue
      oldestAge = age
      oldest = slot
    }
    forget(oldest)
    return oldest
  }

  const textOf = (from: number, length: number): string =>
    bytes.toString('latin1', from * unit, from * unit + length)
  const keyOf = (place: number) => textOf(place + headerUnits, wordAt(place, keyAt))
  const hashPlace = (place: number) => place + headerUnits + unitsOf(wordAt(place, keyAt))
  const hashAt = (place: number) => textOf(hashPlace(place), wordAt(place, hashLengthAt))
  const textAt = (place: number): RawJson => {
    const from = hashPlace(place) + unitsOf(wordAt(place, hashLengthAt))
    return textOf(from, wordAt(place, textLengthAt))
  }
  const numberAt = (place: number) => numbers[place + numberUnit] as number

  /** Gives up the oldest record. One that is wanted is saved, as far as the allowance goes. */
  const giveUp = (saved: KeptRecord[], allowance: number): number => {
    const place = (written - used) % size
    const length = wordAt(place, lengthAt)
    const slot = wordAt(place, slotAt)
    used -= length
    if (slot < 0) return allowance
    forget(slot)
    if (wordAt(place, wantedAt) === 0 || length > allowance) return allowance
    const [number, hash, text] = [numberAt(place), hashAt(place), textAt(place)]
    saved.push({ key: keyOf(place), number, hash, text })
    return allowance - length
  }

  const open = (length: number, slot: number): number => {
    const place = written % size
    words[place * 2 + lengthAt] = length
    words[place * 2 + slotAt] = slot
    written += length
    used += length
    return place
  }

  /** Writes a record; its key is laid out, and `print` is its hash. */
  const write = (record: KeptRecord, print: number, saved: KeptRecord[], allowance: number) => {
    const { hash, text, number } = record
    const length = unitsOfRecord(record)
    const untilEnd = size - (written % size)
    // What does not fit before the end of the ring begins at its start.
    const filler = length > untilEnd ? untilEnd : 0
    let left = allowance
    while (size - used < length + filler) left = giveUp(saved, left)
    if (filler > 0) open(filler, -1)
    const slot = takeSlot(print)
    const place = open(length, slot)
    words[place * 2 + keyAt] = record.key.length
    words[place * 2 + hashLengthAt] = hash.length
    words[place * 2 + textLengthAt] = text.length
    words[place * 2 + wantedAt] = 0
    numbers[place + numberUnit] = number
    const keyUnits = unitsOf(record.key.length)
    words.set(keyWords.subarray(0, keyUnits * 2), (place + headerUnits) * 2)
    const from = (place + headerUnits + keyUnits) * unit
    if (hash !== '') bytes.write(hash, from, 'latin1')
    bytes.write(text, from + unitsOf(hash.length) * unit, 'latin1')
    prints[slot] = print
    places[slot] = place + 1
    count++
  }

  return {
    find(text) {
      const slot = count === 0 ? -1 : slotOf(lay(text), text.length)
      return slot < 0 ? -1 : (places[slot] as number) - 1
    },
    numberAt,
    hashAt,
    readAt(place) {
      words[place * 2 + wantedAt] = 1
      if (place === lastLarge.place) return lastLarge.text
      const text = textAt(place)
      if (text.length > largeText) lastLarge = { place, text }
      return text
    },
    put(record) {
      const print = lay(record.key)
      const old = count === 0 ? -1 : slotOf(print, record.key.length)
      if (old >= 0) forget(old)
      const length = unitsOfRecord(record)
      if (length > longest) return
      if (words.length === 0) allocate()
      const saved: KeptRecord[] = []
      write(record, print, saved, length)
      // They move on into the room of others, wanted or not, so that this comes to an end.
      for (const one of saved) write(one, lay(one.key), [], 0)
    },
    written: () => written,
    drop(above, since) {
      for (let at = Math.max(since, written - used); at < written; ) {
        const place = at % size
        const slot = wordAt(place, slotAt)
        if (slot >= 0 && numberAt(place) > above) forget(slot)
        at += wordAt(place, lengthAt)
      }
    },
    clear() {
      lastLarge = none
      places.fill(0)
      written = used = count = 0
    },
    release() {
      lastLarge = none
      prints = new Int32Array(0)
      places = new Int32Array(0)
      bytes = Buffer.alloc(0)
      words = new Int32Array(0)
      numbers = new Float64Array(0)
      written = used = count = 0
    },
    bytes: () => (words.length === 0 ? 0 : slots * 8 + used * unit),
    size: () => count,
  }
}
