import { hash } from 'node:crypto'
import { encodeRlp, quantityBytes, type RlpItem } from './rlp.ts'

const keccak = (bytes: Uint8Array): Buffer => hash('keccak-256', bytes, 'buffer')
const empty = Buffer.alloc(0)

type Pair = { path: number[]; value: Buffer }

/** The root of the Merkle Patricia trie by which a header commits to a list (yellow paper, D). */
export function listRoot(values: readonly Buffer[]): Buffer {
  if (values.length === 0) return keccak(encodeRlp(empty))
  const pairs = values.map((value, index) => ({ path: nibblesOf(keyOfIndex(index)), value }))
  return keccak(encodeRlp(nodeOf(pairs, 0)))
}

const keyOfIndex = (index: number): Buffer => encodeRlp(quantityBytes(index))

const nibblesOf = (key: Uint8Array): number[] => [...key].flatMap((byte) => [byte >> 4, byte & 15])

function nodeOf(pairs: readonly Pair[], depth: number): RlpItem {
  const first = pairs[0]!
  if (pairs.length === 1) return [compact(first.path.slice(depth), true), first.value]
  const shared = sharedLength(pairs, depth)
  if (shared > 0)
    return [
      compact(first.path.slice(depth, depth + shared), false),
      refer(nodeOf(pairs, depth + shared)),
    ]
  const groups: Pair[][] = Array.from({ length: 16 }, () => [])
  let value = empty
  for (const pair of pairs) {
    const nibble = pair.path[depth]
    if (nibble === undefined) value = Buffer.from(pair.value)
    else groups[nibble]!.push(pair)
  }
  const children = groups.map((some) => (some.length > 0 ? refer(nodeOf(some, depth + 1)) : empty))
  return [...children, value]
}

/** A short node stands in its parent itself, a longer one by its hash. */
function refer(node: RlpItem): RlpItem {
  const encoded = encodeRlp(node)
  return encoded.length < 32 ? node : keccak(encoded)
}

function sharedLength(pairs: readonly Pair[], depth: number): number {
  const { path } = pairs[0]!
  let length = 0
  while (
    depth + length < path.length &&
    pairs.every((pair) => pair.path[depth + length] === path[depth + length])
  )
    length++
  return length
}

function compact(nibbles: readonly number[], isLeaf: boolean): Buffer {
  const flag = (isLeaf ? 2 : 0) + (nibbles.length % 2)
  const all = nibbles.length % 2 ? [flag, ...nibbles] : [flag, 0, ...nibbles]
  const bytes = Buffer.alloc(all.length / 2)
  for (let at = 0; at < bytes.length; at++) bytes[at] = (all[2 * at]! << 4) | all[2 * at + 1]!
  return bytes
}
