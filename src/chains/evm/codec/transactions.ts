import { hash } from 'node:crypto'
import { depositType } from '../block/fees.ts'
import { type ProofRules, provabilityOf } from '../block/proof.ts'
import { depositItems, provedMint } from './deposits.ts'
import {
  bytesOf,
  isHash,
  isProvableTransaction,
  isTransaction,
  type RawTransaction,
  type ReadTransaction,
  typeOf,
} from './raw.ts'
import { byteDigits, quantityDigits, rlpData, rlpList, rlpQuantity } from './rlp.ts'
import { createListTrie } from './trie.ts'

/** The transactions of a block, and their hashes, which are made when they are asked for. */
export type ReadTransactions = {
  transactions: readonly ReadTransaction[]
  hashOf(index: number): Buffer
  /** The encoding to which the header commits; undefined where it does not, or where it is not signed. */
  encodedOf(index: number): Uint8Array | undefined
}

type Fields = RawTransaction & Record<string, unknown>

const quantity = (value: unknown): string => rlpQuantity(value as string | null | undefined)
const data = (value: unknown): string => rlpData(value as string | null | undefined)
const list = <item>(value: unknown, each: (item: item) => string): string => {
  let joined = ''
  for (const item of (value ?? []) as item[]) joined += each(item)
  return rlpList(joined)
}

const accessList = (value: unknown): string =>
  list<{ address: string; storageKeys: string[] }>(value, ({ address, storageKeys }) =>
    rlpList(rlpData(address) + list(storageKeys, rlpData)),
  )
// The tuples of EIP-7702. Some nodes write `v` in place of `yParity`.
const authorizations = (value: unknown): string =>
  list<Record<string, string>>(value, (one) =>
    rlpList(
      quantity(one.chainId) +
        data(one.address) +
        quantity(one.nonce) +
        quantity(one.yParity ?? one.v) +
        quantity(one.r) +
        quantity(one.s),
    ),
  )

const payload = ({ to, value, input }: Fields): string => data(to) + quantity(value) + data(input)
const signature = ({ yParity, v, r, s }: Fields): string =>
  quantity(yParity ?? v) + quantity(r) + quantity(s)
const feeMarket = (tx: Fields): string =>
  quantity(tx.chainId) +
  quantity(tx.nonce) +
  quantity(tx.maxPriorityFeePerGas) +
  quantity(tx.maxFeePerGas) +
  quantity(tx.gas) +
  payload(tx) +
  accessList(tx.accessList)
const priced = (tx: Fields): string =>
  quantity(tx.nonce) + quantity(tx.gasPrice) + quantity(tx.gas) + payload(tx)

// What each type signs or commits to, in the order of its proposal.
const encodings: Readonly<Record<number, (tx: Fields) => string>> = {
  0: (tx) => priced(tx) + quantity(tx.v) + quantity(tx.r) + quantity(tx.s),
  1: (tx) => quantity(tx.chainId) + priced(tx) + accessList(tx.accessList) + signature(tx),
  2: (tx) => feeMarket(tx) + signature(tx),
  3: (tx) =>
    feeMarket(tx) +
    quantity(tx.maxFeePerBlobGas) +
    list(tx.blobVersionedHashes, rlpData) +
    signature(tx),
  4: (tx) => feeMarket(tx) + authorizations(tx.authorizationList) + signature(tx),
  [depositType]: depositItems,
}

/** A transaction as consensus sees it, in hex digits; undefined where its type is not known here. */
export function encodeTransaction(transaction: RawTransaction): string | undefined {
  const type = typeOf(transaction)
  const fields = encodings[type]?.(transaction as Fields)
  if (fields === undefined) return undefined
  return type === 0 ? rlpList(fields) : byteDigits[type] + rlpList(fields)
}

/**
 * Reads the transactions that a header commits to, all of them; undefined where they are others. Their
 * hashes are not looked at: see `hashOf`.
 */
export function readTransactions(
  raw: readonly RawTransaction[],
  { root, rules }: { root: unknown; rules: ProofRules },
): ReadTransactions | undefined {
  const judged = provabilityOf(raw, rules)
  if (judged === 'refused') return undefined
  if (judged === 'unproved') return raw.every(isTransaction) ? readUnproved(raw, rules) : undefined
  if (!raw.every(isProvableTransaction)) return undefined
  const trie = createListTrie(raw.map((one) => encodeTransaction(one)!))
  if (trie.root !== String(root).toLowerCase()) return undefined
  const unsigned = hashesOfUnsigned(raw)
  if (!unsigned) return undefined
  const deposits = new Set<number>()
  for (let index = 0; index < raw.length; index++)
    if (typeOf(raw[index]!) === depositType) deposits.add(index)
  return {
    transactions: raw.map(reduce),
    // Made of what was encoded for the proof, which costs as much as to prove the hash that was given.
    hashOf: (index) => {
      const given = unsigned.get(index)
      return given === undefined ? keccak(trie.value(index)) : bytesOf(given)
    },
    // The encoding of a deposit names its sender.
    encodedOf: (index) =>
      unsigned.has(index) || deposits.has(index) ? undefined : trie.value(index),
  }
}

/** Transactions that cannot be proved. */
const readUnproved = (
  raw: readonly RawTransaction[],
  { unproven_types }: ProofRules,
): ReadTransactions => ({
  transactions: raw.map((one) => (one.nonce === undefined ? { ...one, nonce: '0x0' } : one)),
  hashOf: (index) => {
    const transaction = raw[index]!
    const type = typeOf(transaction)
    // Networks of this kind have encodings of their own: Berachain, for example, one of type 0x7e.
    const isOwn = type === depositType || unproven_types.has(type)
    const bytes = isOwn || isUnsigned(transaction) ? undefined : bytesIfKnown(transaction)
    return bytes ? keccak(bytes) : bytesOf(transaction.hash)
  },
  encodedOf: () => undefined,
})

function bytesIfKnown(transaction: RawTransaction): Uint8Array | undefined {
  try {
    const digits = encodeTransaction(transaction)
    return digits === undefined ? undefined : Uint8Array.fromHex(digits)
  } catch {
    // A chain with rules of its own may write its fields in a way of its own.
    return undefined
  }
}

/**
 * What is used later. The rest is most of a block's text, and whatever lives until the block is stored
 * is copied by the garbage collector on the way.
 */
const reduce = (raw: RawTransaction): ReadTransaction => {
  const { hash, type, from, to, value, nonce, gasPrice } = raw
  return {
    hash,
    type,
    from,
    to,
    value,
    nonce: nonce ?? '0x0',
    gasPrice,
    mint: raw.mint === undefined ? undefined : provedMint(raw as Fields),
  }
}

/**
 * The type of the first transaction whose encoding does not have the hash by which the node names it: the node lies, or
 * its network encodes that type in a way of its own. Undefined where there is none.
 */
export function findForeignType(raw: readonly RawTransaction[]): number | undefined {
  const foreign = raw.find((one) => {
    if (isUnsigned(one)) return false
    const bytes = bytesIfKnown(one)
    return !bytes || !keccak(bytes).equals(bytesOf(one.hash))
  })
  return foreign && typeOf(foreign)
}

/** The hashes that a test node made, by index; undefined where one is no hash. */
function hashesOfUnsigned(raw: readonly RawTransaction[]): Map<number, string> | undefined {
  const unsigned = new Map<number, string>()
  for (let index = 0; index < raw.length; index++) {
    const transaction = raw[index]!
    if (!isUnsigned(transaction)) continue
    if (!isHash(transaction.hash)) return undefined
    unsigned.set(index, transaction.hash)
  }
  return unsigned
}

// By way of a text: as a buffer it costs half as much again.
const keccak = (bytes: Uint8Array): Buffer =>
  Buffer.from(hash('keccak-256', bytes, 'latin1'), 'latin1')

/** Test nodes accept unsigned transactions of any account and make their own hash. */
const isUnsigned = (transaction: RawTransaction): boolean => {
  const { r, s } = transaction as Fields
  return typeOf(transaction) !== depositType && isZero(r) && isZero(s)
}

const isZero = (value: unknown): boolean =>
  quantityDigits(value as string | null | undefined) === ''
