import { hash } from 'node:crypto'
import { isStateSync, stateSyncHash } from '../block/coin-logs.ts'
import { depositType, isDeposit } from '../block/fees.ts'
import { type ProofRules, provabilityOf } from '../block/proof.ts'
import { bloomOf } from './bloom.ts'
import type { ReadBlock } from './header.ts'
import {
  bytesOf,
  isProvable,
  isReceipt,
  type RawLog,
  type RawReceipt,
  type ReadTransaction,
  typeOf,
} from './raw.ts'
import { byteDigits, rlpData, rlpList, rlpQuantity } from './rlp.ts'
import { listRoot } from './trie.ts'

/** Whether receipts are those of the block: each of its transactions in order, no log more or less. */
export function provesReceipts(
  block: ReadBlock,
  receipts: readonly RawReceipt[],
  rules: ProofRules,
): boolean {
  const { transactions } = block
  if (receipts.length !== transactions.length) return false
  const belong = receipts.every(
    (receipt, index) =>
      sameHex(receipt?.transactionHash, transactions[index]!.hash) &&
      sameHex(receipt.blockHash, block.hash),
  )
  if (!belong) return false
  // A receipt of an invented type must not switch the proof off where the transactions were proved.
  const [sent, received] = [provabilityOf(transactions, rules), provabilityOf(receipts, rules)]
  if (sent === 'refused' || received === 'refused') return false
  if (sent === 'proved' && received === 'unproved') return false
  if (sent === 'proved')
    return (
      rootOf(receipts) === block.receiptsRoot.toLowerCase() &&
      hasDerivedFields(transactions, receipts)
    )
  if (!receipts.every(isReceipt)) return false
  if (rules.proof === 'none') return true
  // The bloom of a block of Polygon before Madhugiri does not have the logs of its state sync.
  const last = transactions.at(-1)
  const isOutside = last && isStateSync(last) && sameHex(last.hash, stateSyncHash(block))
  const inside = isOutside ? receipts.slice(0, -1) : receipts
  return bloomOf(inside.flatMap(({ logs }) => logs)).equals(bytesOf(block.logsBloom))
}

/**
 * Whether the fields that no root commits to are those that follow from the committed ones: the gas of
 * each transaction, and the address of a contract that it created, which may receive its value.
 */
function hasDerivedFields(
  transactions: readonly ReadTransaction[],
  receipts: readonly RawReceipt[],
): boolean {
  let before = 0
  for (let index = 0; index < receipts.length; index++) {
    const receipt = receipts[index]!
    const cumulative = Number(receipt.cumulativeGasUsed)
    if (Number(receipt.gasUsed) !== cumulative - before) return false
    before = cumulative
    const created = createdBy(transactions[index]!, receipt)
    if (created !== undefined && !sameHex(receipt.contractAddress, created)) return false
  }
  return true
}

/** The address of the contract that a transaction creates; undefined where it creates none. */
function createdBy(transaction: ReadTransaction, receipt: RawReceipt): string | undefined {
  if (transaction.to || !receipt.contractAddress) return undefined
  // Deposits before Regolith do not say which nonce they used.
  if (isDeposit(transaction) && receipt.depositNonce === undefined) return undefined
  const nonce = isDeposit(transaction) ? receipt.depositNonce : transaction.nonce
  const encoded = rlpList(rlpData(transaction.from) + rlpQuantity(nonce))
  return `0x${hash('keccak-256', Buffer.from(encoded, 'hex'), 'hex').slice(24)}`
}

const sameHex = (one: unknown, other: string): boolean =>
  one === other || (typeof one === 'string' && one.toLowerCase() === other.toLowerCase())

/** Undefined where some field is not what it should be. */
function rootOf(receipts: readonly RawReceipt[]): string | undefined {
  try {
    return receipts.every(isProvable) ? listRoot(receipts.map(encodeReceipt)) : undefined
  } catch (error) {
    if (error instanceof TypeError || error instanceof SyntaxError) return undefined
    throw error
  }
}

/** A receipt as consensus sees it, in hex digits. */
export function encodeReceipt(receipt: RawReceipt): string {
  const type = typeOf(receipt)
  const { status, logs } = receipt
  let joined = ''
  for (const log of logs) joined += encodeLog(log)
  let fields =
    (status === undefined || status === null ? rlpData(receipt.root) : rlpQuantity(status)) +
    rlpQuantity(receipt.cumulativeGasUsed) +
    rlpData(receipt.logsBloom) +
    rlpList(joined)
  // Canyon: from then on both belong to the encoding.
  const version = receipt.depositReceiptVersion
  if (type === depositType && version !== undefined && version !== null)
    fields += rlpQuantity(receipt.depositNonce) + rlpQuantity(version)
  return type === 0 ? rlpList(fields) : byteDigits[type] + rlpList(fields)
}

function encodeLog({ address, topics, data }: RawLog): string {
  let joined = ''
  for (const topic of topics) joined += rlpData(topic)
  return rlpList(rlpData(address) + rlpList(joined) + rlpData(data))
}
