// The trie to which a header commits by `extrinsicsRoot` and `stateRoot`: base 16, blake2b-256
// (paritytech/trie, polkadot-sdk substrate/primitives/trie). In layout 1 a value of more than 32 bytes is kept by its hash.
// polkadot-api has no trie, and `@polkadot/trie-hash` (1.8.1 of 2020) ended before layout 1 and has no proofs. Measured (Node 26,
// CPU time): the root of 100 extrinsics takes 10 ms in both layouts, most of it BLAKE2b, 25 µs for each
// extrinsic: OpenSSL has no BLAKE2b of 256 bits.

import { Blake2256 } from '@polkadot-api/substrate-bindings'
import { compact } from './header.ts'
import { readCompact, ScaleError, skipCompact } from './scale.ts'

const hash256 = (bytes: Uint8Array): Buffer => Buffer.from(Blake2256(Uint8Array.from(bytes)))

type Entry = { key: Uint8Array; value: Buffer }

const nibblesOf = (bytes: Uint8Array): Uint8Array =>
  Uint8Array.from({ length: bytes.length * 2 }, (_, at) =>
    at % 2 === 0 ? bytes[at >> 1]! >> 4 : bytes[at >> 1]! & 15,
  )

/** Whether a root is that of a list of extrinsics, in either layout: runtimes changed it once. */
export function isExtrinsicsRoot(root: Buffer, extrinsics: readonly Buffer[]): boolean {
  const entries = extrinsics.map(
    (value, index): Entry => ({ key: nibblesOf(compact(index)), value }),
  )
  return [0, 1].some((layout) => {
    const bytes = entries.length === 0 ? Buffer.of(0) : encode(entries, 0, layout)
    return hash256(bytes).equals(root)
  })
}

/** A node of the trie of entries that have the same key up to a place. */
function encode(entries: readonly Entry[], at: number, layout: number): Buffer {
  const [first] = entries as [Entry]
  let end = first.key.length
  for (const { key } of entries) {
    let same = at
    while (same < end && key[same] === first.key[same]) same++
    end = same
  }
  const own = entries.find(({ key }) => key.length === end)
  const below = entries.filter(({ key }) => key.length > end)
  const isHashed = own !== undefined && layout === 1 && own.value.length > 32
  // The first byte: leaf or branch, with a value, without one or with its hash. The rest of its bits are the
  // length.
  const [tag, bits] =
    below.length === 0
      ? isHashed
        ? [0x20, 5]
        : [0x40, 6]
      : isHashed
        ? [0x10, 4]
        : [own ? 0xc0 : 0x80, 6]
  const parts: Buffer[] = [headOf(tag!, bits!, end - at), packed(first.key.subarray(at, end))]
  const children = Map.groupBy(below, ({ key }) => key[end]!)
  if (below.length > 0) {
    let bitmap = 0
    for (const nibble of children.keys()) bitmap |= 1 << nibble
    parts.push(Buffer.of(bitmap & 0xff, bitmap >> 8))
  }
  if (own) parts.push(...(isHashed ? [hash256(own.value)] : [compact(own.value.length), own.value]))
  for (const nibble of [...children.keys()].sort((one, other) => one - other)) {
    const child = encode(children.get(nibble)!, end + 1, layout)
    // A node shorter than a hash stands in its parent.
    const reference = child.length < 32 ? child : hash256(child)
    parts.push(compact(reference.length), reference)
  }
  return Buffer.concat(parts)
}

// A length that does not fit into the bits of the first byte continues in bytes of 255 and a rest.
function headOf(tag: number, bits: number, length: number): Buffer {
  const most = (1 << bits) - 1
  if (length < most) return Buffer.of(tag | length)
  const bytes = [tag | most]
  let rest = length - most
  for (; rest >= 255; rest -= 255) bytes.push(255)
  return Buffer.from([...bytes, rest])
}

// Two nibbles per byte; of an odd number the first one has a byte of its own.
function packed(nibbles: Uint8Array): Buffer {
  const odd = nibbles.length & 1
  const bytes = Buffer.alloc((nibbles.length + 1) >> 1)
  if (odd) bytes[0] = nibbles[0]!
  for (let at = odd; at < nibbles.length; at += 2)
    bytes[(at + 1) >> 1] = (nibbles[at]! << 4) | nibbles[at + 1]!
  return bytes
}

/** The nodes of a proof, by their hashes. */
export type Proof = ReadonlyMap<string, Buffer>

/** Reads a proof. What does not belong to it is never found. */
export const readProof = (nodes: readonly Buffer[]): Proof =>
  new Map(nodes.map((node) => [hash256(node).toString('hex'), node]))

/** The value of a key in the state of a root; null where a proof shows that there is none. Throws ScaleError without a proof. */
export function findProven(proof: Proof, root: Buffer, key: Buffer): Buffer | null {
  const path = nibblesOf(key)
  let node = nodeOf(proof, root)
  let at = 0
  for (;;) {
    const { partial, value, children } = readNode(node)
    // The path ends elsewhere: a proof that there is no such key.
    for (const nibble of partial) if (path[at++] !== nibble) return null
    if (at === path.length) {
      if (!value) return null
      return 'hash' in value ? nodeOf(proof, value.hash) : value.bytes
    }
    const child = children[path[at++]!]
    if (!child) return null
    node = child.length === 32 ? nodeOf(proof, child) : child
  }
}

const nodeOf = (proof: Proof, hash: Buffer): Buffer => {
  const node = proof.get(hash.toString('hex'))
  if (!node) throw new ScaleError('the proof lacks a node')
  return node
}

type Value = { bytes: Buffer } | { hash: Buffer }

function readNode(node: Buffer): {
  partial: Uint8Array
  value: Value | undefined
  children: (Buffer | undefined)[]
} {
  const head = node[0]
  if (head === undefined) throw new ScaleError('a node of the proof is empty')
  // The empty trie.
  if (head === 0) return { partial: Uint8Array.of(), value: undefined, children: [] }
  // The first bits say what the node is. The two forms with a hashed value are of layout 1.
  const [bits, isBranch, hasValue, isHashed] =
    head >= 0xc0
      ? [6, true, true, false]
      : head >= 0x80
        ? [6, true, false, false]
        : head >= 0x40
          ? [6, false, true, false]
          : head >= 0x20
            ? [5, false, true, true]
            : [4, true, true, true]
  const most = (1 << bits) - 1
  let length = head & most
  let at = 1
  // A length that does not fit continues in further bytes, until one is below 255.
  if (length === most)
    for (let more = 255; more === 255; length += more) {
      more = node[at++] ?? -1
      if (more < 0) throw new ScaleError('a node of the proof ends too early')
    }
  const bytes = (length + 1) >> 1
  const partial = nibblesOf(node.subarray(at, at + bytes)).subarray(length & 1)
  at += bytes
  let bitmap = 0
  if (isBranch) {
    bitmap = (node[at] ?? 0) | ((node[at + 1] ?? 0) << 8)
    at += 2
  }
  const take = (): Buffer => {
    const begin = skipCompact(node, at)
    const size = readCompact(node, at)
    at = begin + size
    if (at > node.length) throw new ScaleError('a node of the proof ends too early')
    return node.subarray(begin, at)
  }
  let value: Value | undefined
  if (hasValue && isHashed) {
    value = { hash: node.subarray(at, at + 32) }
    at += 32
  } else if (hasValue) value = { bytes: take() }
  const children: (Buffer | undefined)[] = []
  // Children follow the value, in the order of the bitmap.
  for (let nibble = 0; nibble < 16; nibble++) if (bitmap & (1 << nibble)) children[nibble] = take()
  return { partial, value, children }
}
