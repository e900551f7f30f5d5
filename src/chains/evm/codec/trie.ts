// The Merkle Patricia trie of a list, for the roots of transactions and receipts. Neither viem nor ox has one.
//
// Measured (Node 26, CPU time): 2.6 ms for 200 receipts of 500 bytes, most of it Keccak of Node itself. The nodes of the
// trie are hashed where they stand in one buffer and none is kept: a proof of a list needs the root only.

import { hash } from 'node:crypto'
import { encodeRlp, putLength, rlpDigits, rlpList } from './rlp.ts'

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

  const leafOf = (index: number, depth: number): Uint8Array => {
    const begin = begins[index]!
    const end = endOf(list, index)
    let from = begin
    // A byte that is small stands for itself.
    if (end - begin !== 1 || bytes[begin]! >= 0x80) from = putLength(bytes, from, end - begin, 0x80)
    const pathEnd = from
    const path = pathOf(index)
    const left = stepsOf(index) - depth
    for (let bits = 0; bits < 8 * (left >> 1); bits += 8) bytes[--from] = path >>> bits
    bytes[--from] = left % 2 ? 0x30 + stepAt(index, depth) : 0x20
    if (pathEnd - from > 1) from = putLength(bytes, from, pathEnd - from, 0x80)
    from = putLength(bytes, from, end - from, 0xc0)
    return bytes.subarray(from, end)
  }

  /** The node of all paths from one to another, encoded. */
  const nodeOf = (first: number, last: number, depth: number): string => {
    const shared = sharedSteps(order[first]!, order[last]!, depth)
    if (shared > 0) {
      const path = extensionOf(order[first]!, depth, shared)
      return rlpList(rlpDigits(path) + refer(nodeOf(first, last, depth + shared)))
    }
    let children = ''
    let at = first
    for (let step = 0; step < 16; step++) {
      const begin = at
      while (at <= last && stepAt(order[at]!, depth) === step) at++
      if (at === begin) children += '80'
      else if (at > begin + 1) children += refer(nodeOf(begin, at - 1, depth + 1))
      else {
        const leaf = leafOf(order[begin]!, depth + 1)
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

/** How many steps lead to an index: two for each byte of its encoding. */
const stepsOf = (index: number): number =>
  index < 0x80 ? 2 : index < 0x100 ? 4 : index < 0x1_0000 ? 6 : 8

/** The encoding of an index, which is the path to it, as one number of four bytes. */
const pathOf = (index: number): number => {
  if (index < 0x80) return index === 0 ? 0x80 : index
  const bytes = stepsOf(index) / 2 - 1
  return ((0x80 + bytes) << (8 * bytes)) | index
}

const stepAt = (index: number, depth: number): number =>
  (pathOf(index) >>> (4 * (stepsOf(index) - 1 - depth))) & 15

function sharedSteps(one: number, other: number, depth: number): number {
  let count = 0
  while (stepAt(one, depth + count) === stepAt(other, depth + count)) count++
  return count
}

/** Some steps as an extension has them, in hex digits. */
function extensionOf(index: number, depth: number, count: number): string {
  let steps = ''
  for (let at = depth; at < depth + count; at++) steps += stepAt(index, at).toString(16)
  return count % 2 ? `1${steps}` : `00${steps}`
}
