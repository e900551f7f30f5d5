import { bloomOf } from '../codec/bloom.ts'
import { type RawBlock, type RawLog, type RawReceipt, toQuantity } from '../codec/raw.ts'
import { encodeReceipt } from '../codec/receipts.ts'
import { dataDigits, encodeRlp, quantityDigits } from '../codec/rlp.ts'
import { encodeTransaction } from '../codec/transactions.ts'
import { keccakDigits, listRoot } from '../codec/trie.ts'

/** A transaction of a test block; missing fields get defaults. */
export type StubTransaction = {
  from?: string
  to?: string | null
  value?: bigint
  type?: string
  input?: string
  logs?: RawLog[]
  /** Further fields of the transaction and of the receipt. */
  transaction?: object
  receipt?: object
}

/** A test block with its receipts. */
export type StubBlock = { block: RawBlock; receipts: RawReceipt[]; number: number }

const keccak = (digits: string): string => `0x${keccakDigits(digits)}`

/** An address made from a number. */
export const addressOf = (number: number): string => `0x${number.toString(16).padStart(40, '0')}`

/** A topic or word made from a number or an address. */
export const wordOf = (value: number | bigint | string): string =>
  typeof value === 'string' ? `0x${value.slice(2).padStart(64, '0')}` : wordOf(toQuantity(value))

const bloomText = (logs: readonly RawLog[]): string => `0x${bloomOf(logs).toString('hex')}`

/** Makes a block whose hash and receipts are right. */
export function stubBlock(
  transactions: readonly StubTransaction[] = [],
  { parent, salt = '' }: { parent?: StubBlock; salt?: string } = {},
): StubBlock {
  const number = parent ? parent.number + 1 : 0
  const sent = transactions.map(
    ({ from = addressOf(1), to = addressOf(2), value = 0n, type = '0x2', ...rest }, index) => {
      const fields = {
        type,
        from,
        to,
        value: toQuantity(value),
        input: rest.input ?? '0x',
        nonce: toQuantity(number * 1_000 + index),
        r: '0x1',
        s: '0x1',
        ...rest.transaction,
      }
      return { ...fields, hash: keccak(encodeTransaction({ ...fields, hash: '' })!) }
    },
  )
  const receipts = transactions.map(
    ({ logs = [], type = '0x2', receipt }, index): RawReceipt => ({
      transactionHash: sent[index]!.hash,
      blockHash: '',
      type,
      status: '0x1',
      cumulativeGasUsed: toQuantity(30_000 * (index + 1)),
      gasUsed: toQuantity(30_000),
      effectiveGasPrice: '0x2',
      contractAddress: null,
      logs,
      logsBloom: bloomText(logs),
      ...receipt,
    }),
  )
  const header = {
    parentHash: parent?.block.hash ?? wordOf(0),
    sha3Uncles: wordOf(1),
    miner: addressOf(0xfee),
    stateRoot: wordOf(2),
    transactionsRoot: listRoot(sent.map((one) => encodeTransaction(one)!)),
    receiptsRoot: listRoot(receipts.map(encodeReceipt)),
    logsBloom: bloomText(transactions.flatMap(({ logs = [] }) => logs)),
    difficulty: '0x0',
    number: toQuantity(number),
    gasLimit: toQuantity(30_000_000),
    gasUsed: toQuantity(30_000 * transactions.length),
    timestamp: toQuantity(1_700_000_000 + number * 12),
    extraData: `0x${Buffer.from(salt).toString('hex')}`,
    mixHash: wordOf(3),
    nonce: '0x0000000000000000',
    baseFeePerGas: '0x1',
  }
  const quantities = new Set([
    'difficulty',
    'number',
    'gasLimit',
    'gasUsed',
    'timestamp',
    'baseFeePerGas',
  ])
  const fields = Object.entries(header).map(([name, value]) =>
    quantities.has(name) ? quantityDigits(value) : dataDigits(value),
  )
  const blockHash = keccak(encodeRlp(fields))
  for (const receipt of receipts) receipt.blockHash = blockHash
  const block: RawBlock = { ...header, hash: blockHash, transactions: sent }
  return { block, receipts, number }
}

/** Blocks one after the other, empty or with transactions. */
export function stubChain(
  contents: readonly (readonly StubTransaction[])[],
  { parent, salt = '' }: { parent?: StubBlock; salt?: string } = {},
): StubBlock[] {
  const blocks: StubBlock[] = []
  for (const content of contents) {
    const last = blocks.at(-1) ?? parent
    blocks.push(stubBlock(content, { salt, ...(last && { parent: last }) }))
  }
  return blocks
}
