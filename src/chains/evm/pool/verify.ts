import { hash } from 'node:crypto'

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
/** How many of them every header has had from the beginning. */
export const legacyCount = 15
/** What a block has beside the fields of its header, without an effect on the hash. */
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

/** The hash of the known header fields; `unknown` where some are missing, `bad` where one is malformed. */
export function hashOfHeader(block: Record<string, unknown>): string {
  let count = headerFields.length
  while (count > 0 && !isThere(block[headerFields[count - 1]?.[0] as string])) count--
  if (count < legacyCount) return 'unknown'
  // Put together as text and made bytes in one go: ten times as fast as a buffer for each field.
  let list = ''
  for (let index = 0; index < count; index++) {
    const [name, kind, size] = headerFields[index] as (typeof headerFields)[number]
    const value = block[name]
    // A gap is the mark of a chain with other rules.
    if (!isThere(value)) return 'unknown'
    const digits = kind === 'data' ? dataOf(value, size) : quantityOf(value)
    if (digits === undefined) return 'bad'
    list += itemOf(digits)
  }
  const text = prefixOf(list.length / 2, 0xc0) + list
  const bytes = Buffer.from(text, 'hex')
  // What is no hex digit ends the reading.
  return bytes.length * 2 === text.length ? `0x${hash('keccak-256', bytes, 'hex')}` : 'bad'
}

const isThere = (value: unknown) => value !== undefined && value !== null

const isHex = (value: unknown): value is string =>
  typeof value === 'string' && value.charCodeAt(0) === 0x30 && value.charCodeAt(1) === 0x78

function dataOf(value: unknown, size: number | undefined): string | undefined {
  if (!isHex(value) || value.length % 2 > 0) return undefined
  return size === undefined || value.length === 2 + 2 * size ? value.slice(2) : undefined
}

function quantityOf(value: unknown): string | undefined {
  if (!isHex(value) || value.length < 3 || value.length > 66) return undefined
  let from = 2
  while (value.charCodeAt(from) === 0x30) from++
  const digits = value.slice(from)
  return digits.length % 2 ? `0${digits}` : digits
}

/** A byte string in RLP, all in hex digits. */
function itemOf(digits: string): string {
  const isItself = digits.length === 2 && digits.charCodeAt(0) < 0x38
  return isItself ? digits : prefixOf(digits.length / 2, 0x80) + digits
}

function prefixOf(length: number, offset: number): string {
  if (length < 56) return (offset + length).toString(16)
  const digits = length.toString(16)
  const bytes = digits.length % 2 ? `0${digits}` : digits
  return (offset + 55 + bytes.length / 2).toString(16) + bytes
}
