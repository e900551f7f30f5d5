import type { BlockHeader } from '../chain.ts'
import { checkBlock } from '../upstream/verify.ts'
import { bytesOf, isHeader, quantityOf, type RawBlock, type RawHeader } from './raw.ts'
import { type ReadTransactions, readTransactions } from './transactions.ts'

/** What is used of a block once it is proved; nothing else of what came stays. */
export type ReadBlock = ReadTransactions &
  Pick<
    RawBlock,
    | 'hash'
    | 'parentHash'
    | 'number'
    | 'timestamp'
    | 'miner'
    | 'logsBloom'
    | 'receiptsRoot'
    | 'withdrawals'
  > & { gasUsed: unknown }

/** A header that is what its hash says, as far as the chain's rules are known. */
export const readHeader = (result: unknown): RawHeader | undefined =>
  isHeader(result) && checkBlock(result) !== 'bad' ? result : undefined

/** A block of this number with whole transactions, those that its header commits to. */
export function readBlock(
  result: unknown,
  { number, isProved }: { number: number; isProved: boolean },
): ReadBlock | undefined {
  const block = readHeader(result) as RawBlock | undefined
  if (!block || Number(quantityOf(block.number)) !== number) return undefined
  if (!Array.isArray(block.transactions)) return undefined
  const root = block.transactionsRoot
  const read = readTransactions(block.transactions, { root, isProved })
  if (!read) return undefined
  const { hash, parentHash, timestamp, miner, logsBloom, receiptsRoot, gasUsed } = block
  return {
    hash,
    parentHash,
    number: block.number,
    timestamp,
    miner,
    logsBloom,
    receiptsRoot,
    gasUsed,
    ...(block.withdrawals && { withdrawals: block.withdrawals }),
    ...read,
  }
}

/** A header as the port has it. */
export const toHeader = ({ number, hash, parentHash, timestamp }: RawHeader): BlockHeader => ({
  number: Number(quantityOf(number)),
  hash: bytesOf(hash),
  parent_hash: bytesOf(parentHash),
  time: Number(quantityOf(timestamp)) * 1_000,
})
