import { createHash } from 'node:crypto'
import type { Cell } from '@ton/core'

/** The name of a block, as clients address it. */
export type BlockId = {
  workchain: number
  shard: bigint
  seqno: number
  root_hash: Buffer
  file_hash: Buffer
}

/** A block of the masterchain or of a shard. */
export type Block = {
  id: BlockId
  /** The masterchain block that commits it. */
  mc_seqno: number
  prev: BlockId[]
  /** The newest block of every shard, in a masterchain block. */
  shards: BlockId[]
  utime: number
  start_lt: bigint
  end_lt: bigint
  after_split: boolean
  after_merge: boolean
  tx_count: number
}

/** A transaction as it is kept: with the text that API v2 shows of it. */
export type StoredTransaction = {
  account: string
  lt: bigint
  hash: Buffer
  in_hash: Buffer | null
  wire: string
}

/** A message that waits to be put into a block. */
export type QueuedMessage = {
  id: number
  boc: string
  cell: Cell
  external: boolean
  workchain: number
  account: string
  prefix: bigint
}

/** The masterchain's workchain. */
export const masterchain = -1

/** SHA-256 over texts and bytes. */
export const digest = (...parts: (string | Buffer)[]): Buffer => {
  const hash = createHash('sha256')
  for (const part of parts) hash.update(part)
  return hash.digest()
}
