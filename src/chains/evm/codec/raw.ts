// Encodings of EVM chains: addresses, RLP, headers, receipts, transactions, tries, signatures, blooms. Pure
// functions without state or network. They use `lib` and hash functions only. What cannot be decoded is
// undefined or an error, never a guess.

import { batchTopic, singleTopic, transferTopic } from './topics.ts'

/** A log as nodes write it. */
export type RawLog = { address: string; topics: string[]; data: string; logIndex?: string }

/** What is used of a transaction once it is proved. */
export type ReadTransaction = {
  hash: string
  type?: string | undefined
  from: string
  to: string | null | undefined
  value: string
  nonce: string
  gasPrice?: string | undefined
  /** Of a deposit on OP-style chains: what comes from the other chain. */
  mint?: string | undefined
  /** Of a retryable ticket on Arbitrum: what comes from the other chain. */
  depositValue?: string | undefined
  /** Of retryable tickets on Arbitrum, see `block/retryables.ts`. */
  retryValue?: string | undefined
  retryData?: string | undefined
  refundTo?: string | undefined
  l1BaseFee?: string | undefined
  maxSubmissionFee?: string | undefined
  ticketId?: string | undefined
  maxRefund?: string | undefined
  submissionFeeRefund?: string | undefined
  gas?: string | undefined
  maxFeePerGas?: string | undefined
  /** Of Celo: the token in which gas is paid. */
  feeCurrency?: string | null | undefined
  /** Of Morph: the number of the token in which gas is paid. */
  feeTokenID?: string | undefined
}

/** A transaction as nodes write it; only what is used here. */
export type RawTransaction = ReadTransaction & { input: string }

/** A receipt as nodes write it. */
export type RawReceipt = {
  transactionHash: string
  blockHash: string
  type?: string
  status?: string
  /** Before Byzantium, instead of the status. */
  root?: string
  cumulativeGasUsed: string
  gasUsed: string
  effectiveGasPrice?: string
  blobGasUsed?: string
  blobGasPrice?: string
  contractAddress: string | null
  logs: RawLog[]
  logsBloom: string
  /** What a rollup takes for the other chain. */
  l1Fee?: string
  operatorFeeScalar?: string
  operatorFeeConstant?: string
  operatorFee?: string
  /** Of OP-style chains since Jovian. */
  daFootprintGasScalar?: string
  /** Of Mantle: the price of its coin in that of the other chain. */
  tokenRatio?: string
  depositNonce?: string
  depositReceiptVersion?: string
}

/** A header as nodes write it. */
export type RawHeader = Record<string, unknown> & {
  hash: string
  parentHash: string
  number: string
  timestamp: string
  miner: string
  logsBloom: string
  receiptsRoot: string
}

/** A block with its transactions. */
export type RawBlock = RawHeader & {
  transactions: RawTransaction[]
  withdrawals?: { index?: string; validatorIndex?: string; address: string; amount: string }[]
}

/** Whether a value is a hash. */
export const isHash = (value: unknown): value is string => is(hash, value)

/** Whether a value is an address. */
export const isAddress = (value: unknown): value is string => is(address, value)

/** The bytes of `0x` hex. */
export const bytesOf = (hex: string): Buffer => Buffer.from(hex.slice(2), 'hex')

/** A quantity that may be missing, which is zero. */
export const quantityOf = (hex: string | null | undefined): bigint =>
  hex === undefined || hex === null || hex === '0x' ? 0n : BigInt(hex)

/**
 * The type of a transaction or receipt; the first ones have none. Asked a dozen times per transaction: parsing
 * the text of the usual types each time was 1 % of catching up.
 */
export const typeOf = ({ type }: { type?: string | undefined }): number => {
  if (type === '0x2') return 2
  if (type === '0x0' || type === undefined || type === null || type === '0x') return 0
  return Number(type)
}

/** A number as a quantity. */
export const toQuantity = (number: number | bigint): string => `0x${number.toString(16)}`

const quantity = /^0x[0-9a-f]{1,64}$/i
const hash = /^0x[0-9a-f]{64}$/i
// Topics are compared as text.
const lowerHash = /^0x[0-9a-f]{64}$/
const address = /^0x[0-9a-f]{40}$/i
// Whether the digits are pairs is asked beside it: within the pattern it takes four times as long.
const data = /^0x[0-9a-f]*$/i

const isTokenTopic = (topic: string): boolean =>
  topic === transferTopic || topic === singleTopic || topic === batchTopic

const is = (pattern: RegExp, value: unknown): value is string =>
  typeof value === 'string' && pattern.test(value)
const isData = (value: unknown): value is string => is(data, value) && value.length % 2 === 0

/** Whether a value is a header as far as it is used. */
export const isHeader = (value: unknown): value is RawHeader => {
  const header = value as RawHeader | null
  return (
    typeof header === 'object' &&
    header !== null &&
    is(hash, header.hash) &&
    is(hash, header.parentHash) &&
    is(quantity, header.number) &&
    is(quantity, header.timestamp) &&
    is(address, header.miner) &&
    isData(header.logsBloom) &&
    is(hash, header.receiptsRoot)
  )
}

/**
 * Whether a transaction's fields are as they are used, as far as that does not show when it is encoded
 * and its digits are made bytes. Its hash is a name only: it is made of those bytes.
 */
export const isProvableTransaction = ({ hash: name, from, to, value, nonce }: RawTransaction) =>
  typeof name === 'string' &&
  is(address, from) &&
  (to === null || to === undefined || to.length === 42) &&
  isShort(value) &&
  // Some nodes leave it out where it is always zero.
  (nonce === undefined || isShort(nonce))

const isShort = (value: string): boolean => value.length > 2 && value.length <= 66

/** Whether a value is a transaction as far as it is used. */
export const isTransaction = (value: RawTransaction): boolean =>
  is(hash, value.hash) &&
  is(address, value.from) &&
  (is(address, value.to) || value.to === null || value.to === undefined) &&
  is(quantity, value.value) &&
  isData(value.input) &&
  (value.nonce === undefined || is(quantity, value.nonce))

/** Whether a value is a log as far as it is used. */
export const isLog = (value: RawLog): boolean =>
  is(address, value.address) &&
  isData(value.data) &&
  Array.isArray(value.topics) &&
  value.topics.length <= 4 &&
  value.topics.every((topic) => is(lowerHash, topic))

/**
 * Whether a receipt's fields are as they are used, as far as that does not show when the receipt is
 * encoded and its digits are made bytes. The hashes that it names are compared elsewhere.
 */
export const isProvable = (value: RawReceipt): boolean =>
  is(quantity, value.gasUsed) &&
  (is(address, value.contractAddress) || !value.contractAddress) &&
  Array.isArray(value.logs) &&
  value.logs.every(isProvableLog)

const isProvableLog = ({ address, topics, data }: RawLog): boolean =>
  address.length === 42 &&
  typeof data === 'string' &&
  Array.isArray(topics) &&
  topics.length <= 4 &&
  topics.every((topic) => topic.length === 66) &&
  (topics.length === 0 || isTokenTopic(topics[0]!) || is(lowerHash, topics[0]))

/** Whether a value is a receipt as far as it is used. */
export const isReceipt = (value: RawReceipt): boolean =>
  is(hash, value.transactionHash) &&
  is(hash, value.blockHash) &&
  is(quantity, value.cumulativeGasUsed) &&
  is(quantity, value.gasUsed) &&
  isData(value.logsBloom) &&
  (is(address, value.contractAddress) || !value.contractAddress) &&
  (is(quantity, value.status) || isData(value.root)) &&
  Array.isArray(value.logs) &&
  value.logs.every(isLog)
