import { hash } from 'node:crypto'
import { encodeRlp, numberDigits, rlpDigits, rlpList } from './rlp.ts'

/** A list as a header commits to it. */
export type ListTrie = {
  root: string
  /** The bytes of a value. */
  value(index: number): Uint8Array
}

// In hex digits: as a buffer it would cost half as much again.
const keccakHex = (bytes: Uint8Array): string => hash('keccak-256', bytes, 'hex')

/** The Keccak hash of hex digits, in hex digits. */
export const keccakDigits = (digits: string): string => keccakHex(Buffer.from(digits, 'hex'))

/** The root of the trie of a list of values in hex digits. */
export const listRoot = (values: readonly string[]): string => createListTrie(values).root

// What a leaf has before its value is written there: the lengths of both, and the rest of the path.
const room = 16
const roomDigits = '00'.repeat(room)

/**
 * Makes the Merkle Patricia trie by which a header commits to a list (yellow paper, D). The values come
 * in hex digits; all of them become bytes at once, and each leaf is hashed where it stands. Throws where
 * a digit is none.
 */
export function createListTrie(values: readonly string[]): ListTrie {
  let text = ''
  const begins: number[] = []
  for (const value of values) {
    text += roomDigits
    begins.push(text.length / 2)
    text += value
  }
  const list = { bytes: Uint8Array.fromHex(text), begins }
  const root = values.length === 0 ? keccakDigits(encodeRlp('')) : rootOf(list)
  return {
    root: `0x${root}`,
    value: (index) => list.bytes.subarray(begins[index], endOf(list, index)),
  }
}

type List = { bytes: Uint8Array; begins: readonly number[] }

const endOf = ({ bytes, begins }: List, index: number): number =>
  index + 1 < begins.length ? begins[index + 1]! - room : bytes.length

function rootOf(list: List): string {
  const { bytes, begins } = list
  // In the order of their paths, of which none is the beginning of another one.
  const order = orderOf(begins.length)
  // One digit is one step.
  const paths = order.map((index) => rlpDigits(numberDigits(index)))

  const leafOf = (at: number, depth: number): Uint8Array => {
    const begin = begins[order[at]!]!
    const end = endOf(list, order[at]!)
    const path = compact(paths[at]!.slice(depth), true)
    let from = begin
    // A byte that is small stands for itself.
    if (end - begin !== 1 || bytes[begin]! >= 0x80) from = putLength(bytes, from, end - begin, 0x80)
    const pathEnd = from
    from = putNumber(bytes, from, Number.parseInt(path, 16), path.length / 2)
    if (path.length > 2) from = putLength(bytes, from, pathEnd - from, 0x80)
    from = putLength(bytes, from, end - from, 0xc0)
    return bytes.subarray(from, end)
  }

  /** The node of all paths from one to another, encoded. */
  const nodeOf = (first: number, last: number, depth: number): string => {
    const shared = sharedLength(paths[first]!, paths[last]!, depth)
    if (shared > 0) {
      const path = compact(paths[first]!.slice(depth, depth + shared), false)
      return rlpList(rlpDigits(path) + refer(nodeOf(first, last, depth + shared)))
    }
    let children = ''
    let at = first
    for (let digit = 0; digit < 16; digit++) {
      const begin = at
      while (at <= last && digitAt(paths[at]!, depth) === digit) at++
      if (at === begin) children += '80'
      else if (at > begin + 1) children += refer(nodeOf(begin, at - 1, depth + 1))
      else {
        const leaf = leafOf(begin, depth + 1)
        children += leaf.length < 32 ? leaf.toHex() : `a0${keccakHex(leaf)}`
      }
    }
    // The last one is for a value that ends here.
    return rlpList(`${children}80`)
  }

  return begins.length === 1
    ? keccakHex(leafOf(0, 0))
    : keccakDigits(nodeOf(0, begins.length - 1, 0))
}

/** A short node stands in its parent itself, a longer one by its hash. */
const refer = (encoded: string): string =>
  encoded.length < 64 ? encoded : `a0${keccakDigits(encoded)}`

/** Numbers in the order of their encodings: zero is encoded as if it came after 127. */
function orderOf(count: number): number[] {
  const order: number[] = []
  for (let index = 1; index < Math.min(count, 128); index++) order.push(index)
  order.push(0)
  for (let index = 128; index < count; index++) order.push(index)
  return order
}

function digitAt(path: string, at: number): number {
  const code = path.charCodeAt(at)
  return code < 0x40 ? code - 0x30 : code - 0x57
}

function sharedLength(one: string, other: string, depth: number): number {
  let length = 0
  while (one.charCodeAt(depth + length) === other.charCodeAt(depth + length)) length++
  return length
}

function compact(path: string, isLeaf: boolean): string {
  const flag = (isLeaf ? 2 : 0) + (path.length % 2)
  return path.length % 2 ? `${flag}${path}` : `${flag}0${path}`
}

/** Writes a number so that it ends at a place, and says where it begins. */
function putNumber(bytes: Uint8Array, end: number, number: number, size: number): number {
  let rest = number
  for (let at = end - 1; at >= end - size; at--) {
    bytes[at] = rest % 256
    rest = Math.floor(rest / 256)
  }
  return end - size
}

/** Writes what RLP has before so many bytes so that it ends at a place, and says where it begins. */
function putLength(bytes: Uint8Array, end: number, length: number, offset: number): number {
  if (length < 56) return putNumber(bytes, end, offset + length, 1)
  let size = 1
  while (length >= 256 ** size) size++
  const begin = putNumber(bytes, end, length, size)
  return putNumber(bytes, begin, offset + 55 + size, 1)
}
