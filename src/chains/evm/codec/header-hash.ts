import { hash } from 'node:crypto'
import { quantityDigits, rlpDigits, rlpList } from './rlp.ts'

// The one hash of a block header.
//
// Measured gain (Node 26, CPU time): 4.7 µs for a header; viem's `toRlp` and `keccak256` take 115 µs. Headers
// are hashed for each block that the gateway returns and the tracker reads. A reader that finds the fields in
// the text without parsing it has been measured and removed: with `JSON.parse` a block of 150 hashes takes
// 27 µs instead of 45 µs, one of 150 transactions 298 µs instead of 499 µs.

type Kind = 'data' | 'quantity'

/** The header's fields in the order of the protocol; each fork only adds at the end. */
export const headerFields: readonly [name: string, kind: Kind, size?: number][] = [
  ['parentHash', 'data', 32],
  ['sha3Uncles', 'data', 32],
  ['miner', 'data', 20],
  ['stateRoot', 'data', 32],
  ['transactionsRoot', 'data', 32],
  ['receiptsRoot', 'data', 32],
  ['logsBloom', 'data', 256],
  ['difficulty', 'quantity'],
  ['number', 'quantity'],
  ['gasLimit', 'quantity'],
  ['gasUsed', 'quantity'],
  ['timestamp', 'quantity'],
  ['extraData', 'data'],
  ['mixHash', 'data', 32],
  ['nonce', 'data', 8],
  // London
  ['baseFeePerGas', 'quantity'],
  // Shanghai
  ['withdrawalsRoot', 'data', 32],
  // Cancun
  ['blobGasUsed', 'quantity'],
  ['excessBlobGas', 'quantity'],
  ['parentBeaconBlockRoot', 'data', 32],
  // Prague
  ['requestsHash', 'data', 32],
  // Amsterdam (EIP-7928, EIP-7843)
  ['blockAccessListHash', 'data', 32],
  ['slotNumber', 'quantity'],
]
/** How many of them every header has had since the first block. */
export const legacyCount = 15
/** Other members of a block, without an effect on the hash. */
export const otherMembers: readonly string[] = [
  'hash',
  'size',
  'totalDifficulty',
  'transactions',
  'uncles',
  'withdrawals',
  'blockTimestamp',
]
const known = new Set([...headerFields.map(([name]) => name), ...otherMembers])

/**
 * Whether the block's hash is that of its header. A hash that fits the known fields proves them, whatever
 * members a node adds. A hash that does not fit is `unknown` where a member of another fork or chain may
 * belong to the header, and for a pending block; a caller that proves blocks must refuse it.
 */
export function checkBlock(block: Record<string, unknown>): 'ok' | 'bad' | 'unknown' {
  if (typeof block.hash !== 'string') return 'unknown'
  const expected = hashOfHeader(block)
  if (block.hash.toLowerCase() === expected) return 'ok'
  if (expected === 'unknown') return expected
  return unknownMembers(block).length > 0 ? 'unknown' : 'bad'
}

/** The members of a block that no known fork has. */
export const unknownMembers = (block: Record<string, unknown>): string[] =>
  Object.keys(block).filter((name) => !known.has(name))

/** What the text of a block says about itself. */
export type BlockText = {
  /** As it is written; undefined when there is none. */
  hash: string | undefined
  /** -1 when there is none. */
  number: number
  /** Whether the hash is that of the header, as in `checkBlock`. */
  verdict: 'ok' | 'bad' | 'unknown'
  /** Whether one of its transactions names another block as its own. */
  isMixed: boolean
}

/** Reads the text of a block; undefined when it is not an object. */
export function readBlockText(text: string): BlockText | undefined {
  let block: unknown
  try {
    block = JSON.parse(text)
  } catch {
    return undefined
  }
  if (typeof block !== 'object' || block === null || Array.isArray(block)) return undefined
  const { hash: claimed, number, transactions } = block as Record<string, unknown>
  return {
    hash: typeof claimed === 'string' ? claimed : undefined,
    number: typeof number === 'string' ? Number(number) : -1,
    verdict: checkBlock(block as Record<string, unknown>),
    isMixed:
      Array.isArray(transactions) && transactions.some((one) => isOfOtherBlock(one, claimed)),
  }
}

const isOfOtherBlock = (transaction: unknown, hash: unknown): boolean => {
  if (typeof transaction !== 'object' || transaction === null) return false
  const { blockHash } = transaction as { blockHash?: unknown }
  return typeof blockHash === 'string' && blockHash !== hash
}

/** The hash of the known header fields; `unknown` where some are missing, `bad` where one is malformed. */
export function hashOfHeader(block: Record<string, unknown>): string {
  let count = headerFields.length
  while (count > 0 && !isThere(block[headerFields[count - 1]?.[0] as string])) count--
  if (count < legacyCount) return 'unknown'
  // Joined as hex digits and converted once: ten times as fast as a buffer for each field.
  let list = ''
  for (let index = 0; index < count; index++) {
    const [name, kind, size] = headerFields[index] as (typeof headerFields)[number]
    const value = block[name]
    // A gap means that the chain has other rules.
    if (!isThere(value)) return 'unknown'
    const digits = kind === 'data' ? dataOf(value, size) : quantityOf(value)
    if (digits === undefined) return 'bad'
    list += rlpDigits(digits)
  }
  const text = rlpList(list)
  const size = text.length / 2
  const bytes = size > scratch.length ? new Uint8Array(size) : scratch
  try {
    bytes.setFromHex(text)
  } catch {
    // A character that is not a hex digit.
    return 'bad'
  }
  return `0x${hash('keccak-256', bytes.subarray(0, size), 'hex')}`
}

// One scratch area, because a header is hashed synchronously: a new buffer for each took 0.9 µs of 7.
const scratch = new Uint8Array(4_096)

const isThere = (value: unknown) => value !== undefined && value !== null

const isHex = (value: unknown): value is string =>
  typeof value === 'string' && value.charCodeAt(0) === 0x30 && value.charCodeAt(1) === 0x78

function dataOf(value: unknown, size: number | undefined): string | undefined {
  if (!isHex(value) || value.length % 2 > 0) return undefined
  return size === undefined || value.length === 2 + 2 * size ? value.slice(2) : undefined
}

const quantityOf = (value: unknown): string | undefined =>
  isHex(value) && value.length > 2 && value.length <= 66 ? quantityDigits(value) : undefined
