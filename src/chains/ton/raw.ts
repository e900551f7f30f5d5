import { parseAddress } from './address.ts'

/** The masterchain has one shard: all of it, as nodes write it. */
export const masterShard = '-9223372036854775808'

/** A block's name in API v2; the shard is a signed decimal number. */
export type RawBlockId = {
  workchain: number
  shard: string
  seqno: number
  root_hash: string
  file_hash: string
}

/** A message, as far as it is looked at before anything is decoded. */
export type RawMessage = { source?: unknown; destination?: unknown }

/** A transaction: everything in it can be read from `data`, which proves itself. */
export type RawTransaction = {
  account?: unknown
  address?: { account_address?: unknown }
  data: string
  transaction_id: { lt: string; hash: string }
  in_msg?: RawMessage | null
  out_msgs?: RawMessage[] | null
}

/** What is used of a block's header. */
export type RawHeader = {
  id: RawBlockId
  global_id: number
  gen_utime: number
  prev_blocks: RawBlockId[]
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Reads a block's name; only these fields, because nodes refuse parameters that they do not know. */
export function readBlockId(value: unknown): RawBlockId | undefined {
  if (!isRecord(value)) return undefined
  const { workchain, shard, seqno, root_hash, file_hash } = value
  const isId =
    Number.isSafeInteger(workchain) &&
    typeof shard === 'string' &&
    /^-?\d{1,20}$/.test(shard) &&
    Number.isSafeInteger(seqno) &&
    typeof root_hash === 'string' &&
    typeof file_hash === 'string'
  return isId ? ({ workchain, shard, seqno, root_hash, file_hash } as RawBlockId) : undefined
}

const readIds = (value: unknown): RawBlockId[] | undefined => {
  const ids = Array.isArray(value) ? value.map(readBlockId) : [undefined]
  return ids.every((id) => id !== undefined) ? ids : undefined
}

/** Reads a header. */
export function readRawHeader(value: unknown): RawHeader | undefined {
  if (!isRecord(value)) return undefined
  const id = readBlockId(value.id)
  const prev_blocks = readIds(value.prev_blocks)
  const { global_id, gen_utime } = value
  if (!id || !prev_blocks || !Number.isSafeInteger(gen_utime)) return undefined
  return { id, prev_blocks, global_id: Number(global_id), gen_utime: Number(gen_utime) }
}

/** Reads the newest block of every shard. */
export const readShards = (value: unknown): RawBlockId[] | undefined =>
  isRecord(value) ? readIds(value.shards) : undefined

/** Reads a page of a block's transactions. */
export function readPage(
  value: unknown,
): { incomplete: boolean; transactions: RawTransaction[] } | undefined {
  if (!isRecord(value) || !Array.isArray(value.transactions)) return undefined
  const { transactions } = value
  return transactions.every(isTransaction)
    ? { incomplete: value.incomplete === true, transactions }
    : undefined
}

const isTransaction = (value: unknown): value is RawTransaction => {
  if (!isRecord(value) || typeof value.data !== 'string') return false
  const { in_msg, out_msgs } = value
  if (in_msg != null && !isRecord(in_msg)) return false
  if (out_msgs != null && !(Array.isArray(out_msgs) && out_msgs.every(isRecord))) return false
  const id = value.transaction_id
  return isRecord(id) && typeof id.hash === 'string' && /^\d{1,20}$/.test(String(id.lt))
}

/** An address in any form that nodes write; undefined where there is none. */
export function readAccount(value: unknown): Buffer | undefined {
  const text = isRecord(value) ? value.account_address : value
  if (typeof text !== 'string' || text === '') return undefined
  const parsed = parseAddress(text, { production: false })
  return parsed.ok ? parsed.bytes : undefined
}

/** A hash as nodes write it. */
export const readHash = (text: string): Buffer => Buffer.from(text, 'base64')

/** Whether two names are of the same block. */
export const placeOf = ({ workchain, shard, seqno }: RawBlockId): string =>
  `${workchain}:${shard}:${seqno}`
