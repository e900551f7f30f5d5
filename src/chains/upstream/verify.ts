import { hash } from 'node:crypto'
import { encodeRlpList } from './rlp.ts'

type Kind = 'data' | 'quantity'

// The header's fields in the order of the protocol; each fork only adds at the end.
const fields: [name: string, kind: Kind, size?: number][] = [
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
]
const legacyCount = 15
const known = new Set([
  ...fields.map(([name]) => name),
  'hash',
  'size',
  'totalDifficulty',
  'transactions',
  'uncles',
  'withdrawals',
  'blockTimestamp',
])

/**
 * Whether the block's hash is that of its header. Unknown when it cannot be said: a pending block,
 * or fields of a fork or chain that we do not know.
 */
export function checkBlock(block: Record<string, unknown>): 'ok' | 'bad' | 'unknown' {
  if (typeof block.hash !== 'string') return 'unknown'
  if (Object.keys(block).some((key) => !known.has(key))) return 'unknown'
  const count = fields.findLastIndex(([name]) => isThere(block[name])) + 1
  if (count < legacyCount) return 'unknown'
  const parts: Uint8Array[] = []
  for (const [name, kind, size] of fields.slice(0, count)) {
    const value = block[name]
    // A gap is the mark of a chain with other rules.
    if (!isThere(value)) return 'unknown'
    const bytes = kind === 'data' ? dataOf(value, size) : quantityOf(value)
    if (!bytes) return 'bad'
    parts.push(bytes)
  }
  const expected = hash('keccak-256', encodeRlpList(parts), 'hex')
  return block.hash.toLowerCase() === `0x${expected}` ? 'ok' : 'bad'
}

const isThere = (value: unknown) => value !== undefined && value !== null

function dataOf(value: unknown, size: number | undefined): Uint8Array | undefined {
  if (typeof value !== 'string' || !/^0x(?:[0-9a-f]{2})*$/i.test(value)) return undefined
  const bytes = Buffer.from(value.slice(2), 'hex')
  return size === undefined || bytes.length === size ? bytes : undefined
}

function quantityOf(value: unknown): Uint8Array | undefined {
  if (typeof value !== 'string' || !/^0x[0-9a-f]{1,64}$/i.test(value)) return undefined
  const digits = value.slice(2).replace(/^0+/, '')
  return Buffer.from(digits.length % 2 ? `0${digits}` : digits, 'hex')
}
