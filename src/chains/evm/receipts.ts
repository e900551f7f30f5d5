import { hash } from 'node:crypto'
import { depositType } from './fees.ts'
import type { ReadBlock } from './header.ts'
import { bytesOf, isProvable, isReceipt, type RawLog, type RawReceipt, typeOf } from './raw.ts'
import { byteDigits, rlpData, rlpList, rlpQuantity } from './rlp.ts'
import { listRoot } from './trie.ts'

/**
 * How transactions and receipts are proved: by the header's roots; receipts by its bloom only; or
 * (a chain with rules of its own) not at all.
 */
export type Proof = 'root' | 'bloom' | 'none'

const knownTypes = new Set([0, 1, 2, 3, 4, depositType])

/** Whether receipts are those of the block: each of its transactions in order, no log more or less. */
export function provesReceipts(
  block: ReadBlock,
  receipts: readonly RawReceipt[],
  proof: Proof,
): boolean {
  const { transactions } = block
  if (receipts.length !== transactions.length) return false
  const belong = receipts.every(
    (receipt, index) =>
      sameHex(receipt?.transactionHash, transactions[index]!.hash) &&
      sameHex(receipt.blockHash, block.hash),
  )
  if (!belong) return false
  // Another chain's own kind of transaction has an encoding that is not known here.
  if (proof === 'root' && receipts.every((receipt) => knownTypes.has(typeOf(receipt))))
    return rootOf(receipts) === block.receiptsRoot.toLowerCase()
  if (!receipts.every(isReceipt)) return false
  return proof === 'none' || bloomOf(receipts).equals(bytesOf(block.logsBloom))
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
  if (type === depositType && receipt.depositReceiptVersion !== undefined)
    fields += rlpQuantity(receipt.depositNonce) + rlpQuantity(receipt.depositReceiptVersion)
  return type === 0 ? rlpList(fields) : byteDigits[type] + rlpList(fields)
}

function encodeLog({ address, topics, data }: RawLog): string {
  let joined = ''
  for (const topic of topics) joined += rlpData(topic)
  return rlpList(rlpData(address) + rlpList(joined) + rlpData(data))
}

function bloomOf(receipts: readonly RawReceipt[]): Buffer {
  const bloom = Buffer.alloc(256)
  const seen = new Set<string>()
  const add = (item: string): void => {
    if (seen.has(item)) return
    seen.add(item)
    const digest = hash('keccak-256', bytesOf(item), 'buffer')
    for (const at of [0, 2, 4]) {
      const bit = digest.readUInt16BE(at) & 2047
      bloom[255 - (bit >> 3)]! |= 1 << (bit & 7)
    }
  }
  for (const { logs } of receipts)
    for (const { address, topics } of logs) {
      add(address)
      for (const topic of topics) add(topic)
    }
  return bloom
}
