import { hash } from 'node:crypto'
import { bytesOf, isReceipt, quantityOf, type RawBlock, type RawReceipt } from './raw.ts'
import { dataDigits, encodeRlp, quantityDigits, type RlpItem } from './rlp.ts'
import { listRoot } from './trie.ts'

/**
 * How transactions and receipts are proved: by the header's roots; receipts by its bloom only; or
 * (a chain with rules of its own) not at all.
 */
export type Proof = 'root' | 'bloom' | 'none'

const depositType = 0x7e
const knownTypes = new Set([0, 1, 2, 3, 4, depositType])

const typeOf = ({ type }: RawReceipt): number => Number(quantityOf(type))

/** Whether receipts are those of the block: each of its transactions in order, no log more or less. */
export function provesReceipts(
  block: RawBlock,
  receipts: readonly RawReceipt[],
  proof: Proof,
): boolean {
  const { transactions } = block
  if (receipts.length !== transactions.length || !receipts.every(isReceipt)) return false
  const belong = receipts.every(
    ({ transactionHash, blockHash }, index) =>
      sameHex(transactionHash, transactions[index]!.hash) && sameHex(blockHash, block.hash),
  )
  if (!belong || proof === 'none') return belong
  // Another chain's own kind of transaction has an encoding that is not known here.
  if (proof === 'root' && receipts.every((receipt) => knownTypes.has(typeOf(receipt))))
    return sameHex(listRoot(receipts.map(encodeReceipt)), block.receiptsRoot)
  return bloomOf(receipts).equals(bytesOf(block.logsBloom))
}

const sameHex = (one: string, other: string): boolean => one.toLowerCase() === other.toLowerCase()

/** A receipt as consensus sees it, in hex digits. */
export function encodeReceipt(receipt: RawReceipt): string {
  const type = typeOf(receipt)
  const items: RlpItem[] = [
    receipt.status === undefined || receipt.status === null
      ? dataDigits(receipt.root)
      : quantityDigits(receipt.status),
    quantityDigits(receipt.cumulativeGasUsed),
    dataDigits(receipt.logsBloom),
    receipt.logs.map(({ address, topics, data }) => [
      dataDigits(address),
      topics.map(dataDigits),
      dataDigits(data),
    ]),
  ]
  // Canyon: from then on both belong to the encoding.
  if (type === depositType && receipt.depositReceiptVersion !== undefined)
    items.push(quantityDigits(receipt.depositNonce), quantityDigits(receipt.depositReceiptVersion))
  return (type === 0 ? '' : type.toString(16).padStart(2, '0')) + encodeRlp(items)
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
