import { compact, hash256, keyText } from './bytes.ts'

/**
 * Substrate's state trie: base 16, blake2b-256, layouts V0 and V1. Nodes never change, so that every
 * block keeps its own root, forks cost nothing, and a new root hashes only the changed paths.
 */
export type TrieNode = {
  readonly partial: Uint8Array
  readonly value: Uint8Array | undefined
  readonly children: readonly (TrieNode | undefined)[] | undefined
  /** What a parent holds of it, by layout. */
  reference?: { version: number; bytes: Uint8Array }
}

/** An empty trie is not a node. */
export type Trie = TrieNode | undefined

/** The half bytes of a key. */
export const nibblesOf = (key: string): Uint8Array => {
  const nibbles = new Uint8Array(key.length * 2)
  for (let at = 0; at < key.length; at++) {
    const byte = key.charCodeAt(at)
    nibbles[2 * at] = byte >> 4
    nibbles[2 * at + 1] = byte & 15
  }
  return nibbles
}

const commonLength = (a: Uint8Array, b: Uint8Array, from: number): number => {
  let length = 0
  while (length < a.length && from + length < b.length && a[length] === b[from + length]) length++
  return length
}

/** The value of a key. */
export function find(trie: Trie, key: Uint8Array): Uint8Array | undefined {
  let node = trie
  let at = 0
  while (node) {
    if (commonLength(node.partial, key, at) < node.partial.length) return undefined
    at += node.partial.length
    if (at === key.length) return node.value
    node = node.children?.[key[at]!]
    at++
  }
  return undefined
}

/** What stands for a key in its parent: its node's reference, or that of the nearest below it. */
export function merkleValueOf(
  trie: Trie,
  key: Uint8Array,
  version: number,
): Uint8Array | undefined {
  let node = trie
  let at = 0
  while (node) {
    const common = commonLength(node.partial, key, at)
    if (at + common === key.length)
      return node === trie ? rootOf(trie, version) : referenceOf(node, version)
    if (common < node.partial.length) return undefined
    at += common
    node = node.children?.[key[at]!]
    at++
  }
  return undefined
}

/** The trie with one value set. */
export function insert(trie: Trie, key: Uint8Array, value: Uint8Array, at = 0): TrieNode {
  if (!trie) return { partial: key.subarray(at), value, children: undefined }
  const common = commonLength(trie.partial, key, at)
  const end = at + common
  if (common === trie.partial.length) {
    if (end === key.length) return { partial: trie.partial, value, children: trie.children }
    const children = trie.children ? [...trie.children] : new Array<TrieNode | undefined>(16)
    children[key[end]!] = insert(children[key[end]!], key, value, end + 1)
    return { partial: trie.partial, value: trie.value, children }
  }
  const children = new Array<TrieNode | undefined>(16)
  children[trie.partial[common]!] = { ...shed(trie), partial: trie.partial.subarray(common + 1) }
  const partial = trie.partial.subarray(0, common)
  if (end === key.length) return { partial, value, children }
  children[key[end]!] = { partial: key.subarray(end + 1), value, children: undefined }
  return { partial, value: undefined, children }
}

const shed = ({ value, children }: TrieNode) => ({ value, children })

/** The trie without a key. */
export function remove(trie: Trie, key: Uint8Array, at = 0): Trie {
  if (!trie || commonLength(trie.partial, key, at) < trie.partial.length) return trie
  const end = at + trie.partial.length
  if (end === key.length)
    return trie.value ? tidy({ ...shed(trie), value: undefined, partial: trie.partial }) : trie
  const child = trie.children?.[key[end]!]
  const left = child && remove(child, key, end + 1)
  if (!child || left === child) return trie
  const children = [...trie.children!]
  children[key[end]!] = left
  return tidy({ partial: trie.partial, value: trie.value, children })
}

/** A branch with one thing left becomes that thing. */
function tidy(node: TrieNode): Trie {
  const { partial, value, children } = node
  const kept = (children ?? []).flatMap((child, nibble) => (child ? [{ child, nibble }] : []))
  if (kept.length === 0) return value ? { partial, value, children: undefined } : undefined
  if (value || kept.length > 1) return node
  const { child, nibble } = kept[0]!
  return { ...shed(child), partial: Uint8Array.of(...partial, nibble, ...child.partial) }
}

/** The smallest key after another one. */
export function findNext(trie: Trie, key: string): string | undefined {
  const found = nextIn(trie, nibblesOf(key), [])
  return found && textOf(found)
}

function nextIn(node: Trie, after: Uint8Array | undefined, path: number[]): number[] | undefined {
  if (!node) return undefined
  const here = [...path, ...node.partial]
  let from = 0
  let rest = after
  if (after) {
    const common = commonLength(node.partial, after, 0)
    const isAllHere = common === node.partial.length
    if (!isAllHere && common < after.length) {
      if (node.partial[common]! < after[common]!) return undefined
      rest = undefined
    } else if (isAllHere) {
      rest = after.subarray(common)
      from = rest[0] ?? 0
    } else rest = undefined
  }
  if (!rest && node.value) return here
  for (let nibble = from; node.children && nibble < 16; nibble++) {
    const isOn = rest !== undefined && rest.length > 0 && nibble === from
    const found = nextIn(node.children[nibble], isOn ? rest!.subarray(1) : undefined, [
      ...here,
      nibble,
    ])
    if (found) return found
  }
  return undefined
}

const textOf = (nibbles: readonly number[]): string => {
  const bytes = new Uint8Array(nibbles.length / 2)
  for (let at = 0; at < bytes.length; at++)
    bytes[at] = (nibbles[2 * at]! << 4) | nibbles[2 * at + 1]!
  return keyText(bytes)
}

/** The root hash; with a proof the encodings of all nodes are put there too. */
export function rootOf(trie: Trie, version: number, proof?: Uint8Array[]): Uint8Array {
  const bytes = trie ? encode(trie, version, proof) : Uint8Array.of(0)
  proof?.push(bytes)
  return hash256(bytes)
}

function referenceOf(node: TrieNode, version: number, proof?: Uint8Array[]): Uint8Array {
  if (node.reference?.version === version && !proof) return node.reference.bytes
  const bytes = encode(node, version, proof)
  if (bytes.length >= 32) proof?.push(bytes)
  const reference = bytes.length < 32 ? bytes : hash256(bytes)
  node.reference = { version, bytes: reference }
  return reference
}

function encode(node: TrieNode, version: number, proof?: Uint8Array[]): Uint8Array {
  const { partial, value, children } = node
  const isHashed = value !== undefined && version === 1 && value.length > 32
  if (isHashed) proof?.push(value)
  const parts: Uint8Array[] = [head(node, isHashed)]
  if (partial.length > 0) parts.push(packed(partial))
  if (children) {
    let bitmap = 0
    for (let nibble = 0; nibble < 16; nibble++) if (children[nibble]) bitmap |= 1 << nibble
    parts.push(Uint8Array.of(bitmap & 0xff, bitmap >> 8))
  }
  if (value) parts.push(...(isHashed ? [hash256(value)] : [compact(value.length), value]))
  for (const child of children ?? []) {
    if (!child) continue
    const reference = referenceOf(child, version, proof)
    parts.push(compact(reference.length), reference)
  }
  return Buffer.concat(parts)
}

function head({ partial, value, children }: TrieNode, isHashed: boolean): Uint8Array {
  const [tag, bits] = children
    ? isHashed
      ? [0x10, 4]
      : [value ? 0xc0 : 0x80, 6]
    : isHashed
      ? [0x20, 5]
      : [0x40, 6]
  const most = (1 << bits) - 1
  if (partial.length < most) return Uint8Array.of(tag | partial.length)
  const bytes = [tag | most]
  let rest = partial.length - most
  for (; rest >= 255; rest -= 255) bytes.push(255)
  return Uint8Array.from([...bytes, rest])
}

const packed = (nibbles: Uint8Array): Uint8Array => {
  const isOdd = nibbles.length & 1
  const bytes = new Uint8Array((nibbles.length + 1) >> 1)
  if (isOdd) bytes[0] = nibbles[0]!
  for (let at = isOdd; at < nibbles.length; at += 2)
    bytes[(at + 1) >> 1] = (nibbles[at]! << 4) | nibbles[at + 1]!
  return bytes
}

/** The nodes that prove what keys have, or that they have nothing. */
export function proofOf(trie: Trie, keys: readonly Uint8Array[], version: number): Uint8Array[] {
  const found = new Map<TrieNode, Uint8Array>()
  const values: Uint8Array[] = []
  for (const key of keys) {
    let node = trie
    let at = 0
    while (node) {
      if (!found.has(node)) found.set(node, encode(node, version))
      if (commonLength(node.partial, key, at) < node.partial.length) break
      at += node.partial.length
      if (at === key.length) {
        if (version === 1 && node.value && node.value.length > 32) values.push(node.value)
        break
      }
      node = node.children?.[key[at]!]
      at++
    }
  }
  // A small node stands in its parent.
  const nodes = [...found].flatMap(([node, bytes]) =>
    node === trie || bytes.length >= 32 ? [bytes] : [],
  )
  return [...nodes, ...values]
}

/** The root of a list, as headers commit to their extrinsics. */
export const orderedRoot = (items: readonly Uint8Array[], version: number): Uint8Array => {
  let trie: Trie
  for (const [index, item] of items.entries())
    trie = insert(trie, nibblesOf(keyText(compact(index))), item)
  return rootOf(trie, version)
}
