import type { BlockHeader } from '../chain.ts'
import { checkBlock } from '../upstream/verify.ts'
import {
  bytesOf,
  isHeader,
  isTransaction,
  quantityOf,
  type RawBlock,
  type RawHeader,
} from './raw.ts'
import { provesTransactions } from './transactions.ts'

/** A header that is what its hash says, as far as the chain's rules are known. */
export const readHeader = (result: unknown): RawHeader | undefined =>
  isHeader(result) && checkBlock(result) !== 'bad' ? result : undefined

/** A block of this number with whole transactions, those that its header commits to. */
export const readBlock = (
  result: unknown,
  { number, isProved }: { number: number; isProved: boolean },
): RawBlock | undefined => {
  const block = readHeader(result) as RawBlock | undefined
  if (!block || Number(quantityOf(block.number)) !== number) return undefined
  if (!Array.isArray(block.transactions) || !block.transactions.every(isTransaction))
    return undefined
  return !isProved || provesTransactions(block) ? block : undefined
}

/** A header as the port has it. */
export const toHeader = ({ number, hash, parentHash, timestamp }: RawHeader): BlockHeader => ({
  number: Number(quantityOf(number)),
  hash: bytesOf(hash),
  parent_hash: bytesOf(parentHash),
  time: Number(quantityOf(timestamp)) * 1_000,
})
