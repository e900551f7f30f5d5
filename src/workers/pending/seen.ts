import { type RawFields, toPendingTransaction } from '../../chains/evm/block/records.ts'
import type { SeenPending } from '../../storage/transactions/pending.ts'

/** More than any pool takes: the store is for transactions, not for floods. */
const largestBytes = 300_000

// What the record of spec 2.12 is made of; the rest of a node's object is never asked for.
const used = [
  ...['hash', 'type', 'from', 'to', 'gas', 'gasPrice', 'maxFeePerGas', 'input', 'data', 'nonce'],
  ...['value', 'r', 's', 'v', 'yParity'],
]

// A member that the record does not look at may hold anything, and one bad text fails the whole write.
const isPlain = (value: unknown): boolean =>
  value === null ||
  typeof value === 'number' ||
  (typeof value === 'string' && /^0x[0-9a-f]*$/i.test(value))

const bytesOf = (hex: string, size: number): Buffer => {
  const bytes = Buffer.from(hex.slice(2), 'hex')
  if (bytes.length !== size) throw new RangeError('not so many bytes')
  return bytes
}

/** A node's object as a row; undefined when it is not a transaction that can be recorded. */
export function toSeen(raw: RawFields, time: number): SeenPending | undefined {
  try {
    const { transaction_hash, from } = toPendingTransaction(raw)
    const nonce = Number(raw.nonce ?? '0x0')
    // No account can reach a nonce beyond this, so the transaction is never mined.
    if (!Number.isSafeInteger(nonce) || nonce < 0) return undefined
    const detail = Object.fromEntries(
      used.flatMap((name) => (isPlain(raw[name]) ? [[name, raw[name]]] : [])),
    )
    if (JSON.stringify(detail).length > largestBytes) return undefined
    const isMined = raw.blockHash !== null && raw.blockHash !== undefined
    return {
      transaction_hash: bytesOf(transaction_hash, 32),
      from: bytesOf(from, 20),
      nonce,
      detail,
      record_time: new Date(time),
      // It was announced, and mined before it was read.
      leave_time: isMined ? new Date(time) : null,
    }
  } catch {
    return undefined
  }
}

/** The transactions of `txpool_content`, or of one sender's part of it, in both of its halves. */
export function readPoolContent(result: unknown): RawFields[] {
  const found: RawFields[] = []
  const collect = (value: unknown, depth: number) => {
    // The depth is fixed by the format (state, sender, nonce). Deeper input of a node is ignored.
    if (typeof value !== 'object' || value === null || depth > 3) return
    if ('hash' in value && 'from' in value) found.push(value as RawFields)
    else for (const inner of Object.values(value)) collect(inner, depth + 1)
  }
  collect(result, 0)
  return found
}
