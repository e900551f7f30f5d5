/** A log as nodes write it. */
export type RawLog = { address: string; topics: string[]; data: string; logIndex?: string }

/** A transaction as nodes write it; only what is used here. */
export type RawTransaction = {
  hash: string
  type?: string
  from: string
  to: string | null
  value: string
  input: string
  nonce: string
  gasPrice?: string
  /** Of a deposit on OP-style chains: what comes from the other chain. */
  mint?: string
}

/** A receipt as nodes write it. */
export type RawReceipt = {
  transactionHash: string
  blockHash: string
  type?: string
  status?: string
  /** Before Byzantium, in the place of the status. */
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
  withdrawals?: { address: string; amount: string }[]
}

/** The bytes of `0x` hex. */
export const bytesOf = (hex: string): Buffer => Buffer.from(hex.slice(2), 'hex')

/** A quantity that may be missing, which is zero. */
export const quantityOf = (hex: string | null | undefined): bigint =>
  hex === undefined || hex === null || hex === '0x' ? 0n : BigInt(hex)

/** A number as a quantity. */
export const toQuantity = (number: number | bigint): string => `0x${number.toString(16)}`

const quantity = /^0x[0-9a-f]{1,64}$/i
const hash = /^0x[0-9a-f]{64}$/i
// Topics are compared as text.
const lowerHash = /^0x[0-9a-f]{64}$/
const address = /^0x[0-9a-f]{40}$/i
// Whether the digits are pairs is asked beside it: within the pattern it takes four times as long.
const data = /^0x[0-9a-f]*$/i

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

/** Whether a value is a transaction as far as it is used. */
export const isTransaction = (value: RawTransaction): boolean =>
  is(hash, value.hash) &&
  is(address, value.from) &&
  (is(address, value.to) || value.to === null || value.to === undefined) &&
  is(quantity, value.value) &&
  isData(value.input) &&
  is(quantity, value.nonce)

/** Whether a value is a log as far as it is used. */
export const isLog = (value: RawLog): boolean =>
  is(address, value.address) &&
  isData(value.data) &&
  Array.isArray(value.topics) &&
  value.topics.length <= 4 &&
  value.topics.every((topic) => is(lowerHash, topic))

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
