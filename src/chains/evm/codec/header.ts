// Headers and blocks that are proved by their hash. The tracker reads blocks through this file, so where a network demands
// `proof: root`, no header or list of transactions gets past it unproved. Senders and traces are checked later
// (`block/node-claims.ts`).

import type { BlockHeader } from '../../chain.ts'
import { isStateSync, markStateSync } from '../block/coin-logs.ts'
import { depositType } from '../block/fees.ts'
import { type Proof, type ProofRules, provabilityOf } from '../block/proof.ts'
import { checkBlock, unknownMembers } from './header-hash.ts'
import {
  bytesOf,
  isAddress,
  isHeader,
  quantityOf,
  type RawBlock,
  type RawHeader,
  type RawTransaction,
  toQuantity,
  typeOf,
} from './raw.ts'
import { rlpData, rlpList, rlpQuantity } from './rlp.ts'
import { findForeignType, type ReadTransactions, readTransactions } from './transactions.ts'
import { listRoot } from './trie.ts'

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
  > & {
    /** No transaction of it can have run code. */
    isPlain: boolean
  }

/**
 * A header that is what its hash says. With `root` the hash must be that of the header. Otherwise a
 * header with fields of its own passes: an operator has said that this chain follows other rules.
 */
export const readHeader = (result: unknown, proof: Proof): RawHeader | undefined => {
  if (!isHeader(result)) return undefined
  const checked = checkBlock(result)
  return checked === 'ok' || (checked === 'unknown' && proof !== 'root') ? result : undefined
}

/** Why a block cannot be proved by the rules that are known here, for the operator. */
export function whyRefused(result: unknown, rules: ProofRules): string | undefined {
  if (!isHeader(result) || rules.proof !== 'root') return undefined
  const checked = checkBlock(result)
  if (checked === 'unknown') {
    const names = unknownMembers(result).slice(0, 5).join(', ')
    return `the hash does not fit the known header fields (other members: ${names || 'none'}); set \`proof: bloom\` if the network has a header of its own`
  }
  const { transactions } = result
  if (!Array.isArray(transactions)) return undefined
  if (checked === 'ok' && !hasWithdrawals(result as RawBlock, rules.proof))
    return 'the withdrawals are not those of the header; if other nodes send the same, set `proof: bloom`'
  const judged = provabilityOf(markStateSync(result, transactions), rules)
  if (judged === 'refused')
    return 'a transaction has a type that cannot be proved; list it in `unproven_types` if the network has it'
  const foreign = judged === 'proved' ? findForeignType(transactions) : undefined
  if (foreign === undefined) return undefined
  return `a transaction of type ${toQuantity(foreign)} does not have its hash in any encoding that is known; if other nodes send the same, list ${foreign} in \`unproven_types\``
}

/** A block of this number with whole transactions, those that its header commits to. */
export function readBlock(
  result: unknown,
  { number, rules }: { number: number; rules: ProofRules },
): ReadBlock | undefined {
  const block = readHeader(result, rules.proof) as RawBlock | undefined
  if (!block || Number(quantityOf(block.number)) !== number) return undefined
  if (!Array.isArray(block.transactions)) return undefined
  if (!hasWithdrawals(block, rules.proof)) return undefined
  // A header of before Shanghai commits to none.
  const isCommitted = rules.proof !== 'root' || isThere(block.withdrawalsRoot)
  const transactions = markStateSync(block, block.transactions)
  const root = block.transactionsRoot
  const read = readTransactions(transactions, { root, rules })
  if (!read) return undefined
  const { hash, parentHash, timestamp, miner, logsBloom, receiptsRoot } = block
  return {
    hash,
    parentHash,
    number: block.number,
    timestamp,
    miner,
    logsBloom,
    receiptsRoot,
    isPlain: transactions.every((one) => isStateSync(one) || isPlain(one)),
    ...(block.withdrawals && isCommitted && { withdrawals: block.withdrawals }),
    ...read,
  }
}

const isThere = (value: unknown): boolean => value !== undefined && value !== null

const noWithdrawals = listRoot([])

/**
 * Whether the withdrawals (EIP-4895) are those to which the header commits. The OP stack has none: since Isthmus the root is
 * that of the storage of a contract, in the first block too (ethereum-optimism/specs, protocol/isthmus/exec-engine.md). Each
 * later block of it begins with a deposit, which the root of the transactions proves. Beside a type that is accepted unproven it
 * is the node's word: Celo has such types and deposits in one block.
 */
function hasWithdrawals(block: RawBlock, proof: Proof): boolean {
  const { withdrawalsRoot, transactions, number } = block
  const list: unknown = block.withdrawals ?? []
  if (!Array.isArray(list) || !list.every((one) => isAddress(one?.address))) return false
  if (proof !== 'root' || !isThere(withdrawalsRoot)) return true
  if (list.length > 0) return listRoot(list.map(encodeWithdrawal)) === lower(withdrawalsRoot)
  if (lower(withdrawalsRoot) === noWithdrawals || quantityOf(number) === 0n) return true
  return transactions.some((one) => typeOf(one) === depositType)
}

const lower = (value: unknown): string => String(value).toLowerCase()

const encodeWithdrawal = (one: NonNullable<RawBlock['withdrawals']>[number]): string =>
  rlpList(
    rlpQuantity(one.index) +
      rlpQuantity(one.validatorIndex) +
      rlpData(one.address) +
      rlpQuantity(one.amount),
  )

// The least that a transaction costs before it runs anything.
const plainGas = 21_000

/**
 * Whether a transaction cannot run code, as far as the block itself proves it: all the gas that it was
 * given is what it costs to be sent at all, so that nothing was left to run with. The gas that was
 * used proves nothing: system transactions may be free, and refunds make any sum possible.
 */
function isPlain(transaction: RawTransaction): boolean {
  const { type, to, input, gas } = transaction as RawTransaction & { gas?: unknown }
  const isUsual = type === undefined || type === '0x0' || type === '0x1' || type === '0x2'
  return isUsual && typeof to === 'string' && input === '0x' && Number(gas) === plainGas
}

/** A header as the port has it. */
export const toHeader = ({ number, hash, parentHash, timestamp }: RawHeader): BlockHeader => ({
  number: Number(quantityOf(number)),
  hash: bytesOf(hash),
  parent_hash: bytesOf(parentHash),
  time: Number(quantityOf(timestamp)) * 1_000,
})
