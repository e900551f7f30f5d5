import { hash } from 'node:crypto'
import type { RawJson } from '../pool/pool-types.ts'
import { headerFields, legacyCount, otherMembers } from '../pool/verify.ts'
import { skipSpace, skipString, skipValue, startsWith } from '../transport/json-skip.ts'

/** What the text of a block says of itself. */
export type BlockText = {
  /** As it stands there; undefined when it is none. */
  hash: string | undefined
  /** -1 when there is none. */
  number: number
  /** Whether the hash is that of the header; unknown as in `checkBlock`. */
  verdict: 'ok' | 'bad' | 'unknown'
}

/** Reads the text of a block; undefined when it is no object. */
export type ReadBlockText = (text: RawJson) => BlockText | undefined

type Member = { bytes: Buffer; index: number }

const hashIndex = headerFields.length
// From the quote before the value to that behind it; 0 where it differs from block to block.
const sizes = Int32Array.from([
  ...headerFields.map(([, , size]) => (size === undefined ? 0 : 2 * size + 3)),
  ...otherMembers.map((name) => (name === 'hash' ? 67 : 0)),
])
const numberIndex = headerFields.findIndex(([name]) => name === 'number')
// Blocks with all their transactions are longer; they come with room of their own.
const roomBytes = 16_384
// Room for the longest prefix of the list before its items.
const itemsAt = 9

/**
 * Makes a reader that takes nothing from the heap: for every block that passes through, an object of
 * its fields would be made and thrown away, and cost more than the hash.
 */
export function createBlockReader(): ReadBlockText {
  const members = membersByHash()
  const room = { text: Buffer.alloc(roomBytes), list: Buffer.alloc(roomBytes) }
  // Where the values of the members begin and end, without their quotes; -1 when they are not there.
  const from = new Int32Array(hashIndex + otherMembers.length)
  const to = new Int32Array(from.length)
  let text = room.text
  let list = room.list

  /**
   * Finds the members; false when it is no object, and null when there are some of another chain. In
   * haste, where a value of a known length ends in a quote it is not looked at: whatever stands there
   * is decoded later and must lead to the hash.
   */
  const findMembers = (isInHaste: boolean): boolean | null => {
    from.fill(-1)
    let isKnown = true
    let at = skipSpace(text, 0)
    if (text[at] !== 0x7b) return false
    at = skipSpace(text, at + 1)
    while (text[at] !== 0x7d) {
      const keyEnd = skipString(text, at)
      if (keyEnd < 0) return false
      const valueAt = skipSpace(text, skipSpace(text, keyEnd) + 1)
      const index = memberAt(members, text, at + 1, keyEnd - 1)
      const size = isInHaste && index >= 0 ? (sizes[index] as number) : 0
      const isThere = size > 0 && text[valueAt] === 0x22 && text[valueAt + size] === 0x22
      const end = isThere ? valueAt + size + 1 : skipValue(text, valueAt)
      if (end < 0) return false
      if (index < 0) isKnown = false
      else {
        const isString = text[valueAt] === 0x22
        const isNull = text[valueAt] === 0x6e
        from[index] = isNull ? -1 : valueAt + (isString ? 1 : 0)
        // Nothing but a string is of use in a header: all else is no hex, whatever it is.
        to[index] = isString ? end - 1 : end
      }
      at = skipSpace(text, end)
      if (text[at] === 0x2c) at = skipSpace(text, at + 1)
      else if (text[at] !== 0x7d) return false
    }
    return isKnown ? true : null
  }

  /** Puts the header together; the end of its items, or what cannot be said. */
  const writeItems = (): number | 'bad' | 'unknown' => {
    let count = headerFields.length
    while (count > 0 && (from[count - 1] as number) < 0) count--
    if (count < legacyCount) return 'unknown'
    let at = itemsAt
    for (let index = 0; index < count; index++) {
      const [, kind, size] = headerFields[index] as (typeof headerFields)[number]
      const begin = from[index] as number
      const end = to[index] as number
      // A gap is the mark of a chain with other rules.
      if (begin < 0) return 'unknown'
      if (text[begin] !== 0x30 || text[begin + 1] !== 0x78) return 'bad'
      const isQuantity = kind === 'quantity'
      if (isQuantity ? !isQuantityLength(end - begin) : !isDataLength(end - begin, size))
        return 'bad'
      at = writeItem(text, isQuantity ? skipZeros(text, begin + 2, end) : begin + 2, end, list, at)
      if (at < 0) return 'bad'
    }
    return at
  }

  const judge = (claimed: string): BlockText['verdict'] => {
    const end = writeItems()
    if (typeof end === 'string') return end
    const digest = `0x${hash('keccak-256', list.subarray(writePrefix(list, end), end), 'hex')}`
    return claimed === digest || claimed.toLowerCase() === digest ? 'ok' : 'bad'
  }

  const look = (isInHaste: boolean): BlockText | undefined => {
    const found = findMembers(isInHaste)
    if (found === false) return undefined
    const [hashAt, numberAt] = [from[hashIndex] as number, from[numberIndex] as number]
    const isHash = hashAt >= 0 && text[hashAt - 1] === 0x22
    const claimed = isHash ? text.toString('latin1', hashAt, to[hashIndex]) : undefined
    return {
      hash: claimed,
      number: numberAt < 0 ? -1 : Number(text.toString('latin1', numberAt, to[numberIndex])),
      verdict: claimed !== undefined && found ? judge(claimed) : 'unknown',
    }
  }

  return (raw) => {
    const { length } = raw
    const isLong = length >= roomBytes
    text = isLong ? Buffer.alloc(length + 1) : room.text
    // Even if all of it were header, the bytes need half of the room of their digits.
    list = isLong ? Buffer.alloc(length) : room.list
    text.write(raw, 'latin1')
    text[length] = 0
    const block = look(true)
    return block?.verdict === 'ok' ? block : look(false)
  }
}

function membersByHash(): Map<number, Member[]> {
  const members = new Map<number, Member[]>()
  for (const [index, name] of [...headerFields.map(([name]) => name), ...otherMembers].entries()) {
    const bytes = Buffer.from(name)
    const key = hashOf(bytes, 0, bytes.length)
    members.set(key, [...(members.get(key) ?? []), { bytes, index }])
  }
  return members
}

function hashOf(text: Uint8Array, from: number, to: number): number {
  let value = to - from
  for (let at = from; at < to; at++) value = (Math.imul(value, 31) + (text[at] as number)) | 0
  return value
}

function memberAt(
  members: Map<number, Member[]>,
  text: Uint8Array,
  from: number,
  to: number,
): number {
  for (const { bytes, index } of members.get(hashOf(text, from, to)) ?? [])
    if (bytes.length === to - from && startsWith(text, from, bytes)) return index
  return -1
}

const isDataLength = (length: number, size: number | undefined): boolean =>
  length % 2 === 0 && (size === undefined || length === 2 + 2 * size)

const isQuantityLength = (length: number): boolean => length > 2 && length <= 66

function skipZeros(text: Uint8Array, from: number, to: number): number {
  let at = from
  while (at < to && text[at] === 0x30) at++
  return at
}

const digitOf = new Int8Array(256).fill(-1)
for (const [value, digit] of [...'0123456789abcdef'].entries()) {
  digitOf[digit.charCodeAt(0)] = value
  digitOf[digit.toUpperCase().charCodeAt(0)] = value
}

/** Writes hex digits as a byte string in RLP; -1 when some are none. */
function writeItem(
  text: Uint8Array,
  from: number,
  to: number,
  list: Uint8Array,
  place: number,
): number {
  const length = (to - from + 1) >> 1
  let at = place
  if (length < 56) list[at++] = 0x80 + length
  else {
    const size = bytesOf(length)
    list[at++] = 0xb7 + size
    for (let shift = 8 * (size - 1); shift >= 0; shift -= 8) list[at++] = length >>> shift
  }
  const first = at
  let digit = from
  if ((to - from) % 2 > 0) {
    const value = digitOf[text[digit++] as number] as number
    if (value < 0) return -1
    list[at++] = value
  }
  for (; digit < to; digit += 2) {
    const high = digitOf[text[digit] as number] as number
    const low = digitOf[text[digit + 1] as number] as number
    if ((high | low) < 0) return -1
    list[at++] = (high << 4) | low
  }
  // A single small byte stands for itself.
  if (length !== 1 || (list[first] as number) >= 0x80) return at
  list[place] = list[first] as number
  return place + 1
}

/** Writes the prefix of the list before its items, and answers where it begins. */
function writePrefix(list: Uint8Array, end: number): number {
  // Longer than 55 bytes in any case: three roots alone are.
  const length = end - itemsAt
  const size = bytesOf(length)
  for (let index = 0; index < size; index++) list[itemsAt - 1 - index] = length >>> (8 * index)
  list[itemsAt - 1 - size] = 0xf7 + size
  return itemsAt - 1 - size
}

const bytesOf = (length: number): number =>
  length < 0x100 ? 1 : length < 0x10000 ? 2 : length < 0x1000000 ? 3 : 4
