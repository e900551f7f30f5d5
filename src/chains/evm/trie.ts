import { hash } from 'node:crypto'
import { encodeRlp, numberDigits, type RlpItem } from './rlp.ts'

/** The Keccak hash of hex digits, in hex digits. */
export const keccakDigits = (digits: string): string =>
  hash('keccak-256', Buffer.from(digits, 'hex'), 'hex')

type Pair = { path: string; value: string }

/** The root of the Merkle Patricia trie by which a header commits to a list (yellow paper, D). */
export function listRoot(values: readonly string[]): string {
  if (values.length === 0) return `0x${keccakDigits(encodeRlp(''))}`
  // One digit is one step on the path.
  const pairs = values.map((value, index) => ({ path: encodeRlp(numberDigits(index)), value }))
  return `0x${keccakDigits(encodeRlp(nodeOf(pairs, 0)))}`
}

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
  let value = ''
  for (const pair of pairs) {
    if (depth === pair.path.length) value = pair.value
    else groups[Number.parseInt(pair.path[depth]!, 16)]!.push(pair)
  }
  const children = groups.map((some) => (some.length > 0 ? refer(nodeOf(some, depth + 1)) : ''))
  return [...children, value]
}

/** A short node stands in its parent itself, a longer one by its hash. */
function refer(node: RlpItem): RlpItem {
  const encoded = encodeRlp(node)
  return encoded.length < 64 ? node : keccakDigits(encoded)
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

function compact(path: string, isLeaf: boolean): string {
  const flag = (isLeaf ? 2 : 0) + (path.length % 2)
  return path.length % 2 ? `${flag}${path}` : `${flag}0${path}`
}
