// Records of the query API (spec 2.12) from answers of nodes. A member that a chain does not have is filled with zeros or
// null; a member that makes no sense throws MalformedAnswerError, which fails the answer and not the service.

import { toInteger } from '../../../lib/integers.ts'

/** An object of a node: nothing is known of its members. */
export type RawFields = Record<string, unknown>

/** A node's answer is not what its method promises. */
export class MalformedAnswerError extends Error {
  override name = 'MalformedAnswerError'
}

const hexPattern = /^0x[0-9a-f]*$/i
const none = (bytes: number) => `0x${'00'.repeat(bytes)}`
const depositType = 0x7en

/** Reads one member after the other, with its name for the complaint. */
const readerOf = (raw: RawFields) => {
  const isThere = (name: string) => raw[name] !== undefined && raw[name] !== null
  const hex = (name: string, missing?: string): string => {
    const value = raw[name] ?? missing
    if (typeof value !== 'string' || !hexPattern.test(value))
      throw new MalformedAnswerError(`${name} is not hex`)
    return value.toLowerCase()
  }
  const big = (name: string, missing?: bigint): bigint => {
    const value = raw[name]
    if (isThere(name) && typeof value === 'number' && Number.isSafeInteger(value) && value >= 0)
      return BigInt(value)
    if (missing !== undefined && !isThere(name)) return missing
    const digits = hex(name)
    return digits === '0x' ? 0n : BigInt(digits)
  }
  return {
    isThere,
    hex,
    big,
    hexOrNull: (name: string) => (isThere(name) ? hex(name) : null),
    integer: (name: string, missing?: bigint) => toInteger(big(name, missing)),
    /** A quantity without leading zeros. */
    quantity: (name: string, missing?: bigint) => `0x${big(name, missing).toString(16)}`,
  }
}

/** The block record of spec 2.12. Chains without proof of work may leave the last marks of it out. */
export function toBlock(raw: RawFields) {
  const { hex, integer } = readerOf(raw)
  const { uncles = [] } = raw
  if (!Array.isArray(uncles)) throw new MalformedAnswerError('uncles is no array')
  return {
    block_hash: hex('hash'),
    block_number: integer('number'),
    difficulty: integer('difficulty', 0n),
    extra_data: hex('extraData', '0x'),
    gas_limit: integer('gasLimit'),
    gas_used: integer('gasUsed'),
    logs_bloom: hex('logsBloom', none(256)),
    miner: hex('miner', none(20)),
    mix_hash: hex('mixHash', none(32)),
    nonce: hex('nonce', none(8)),
    parent_hash: hex('parentHash'),
    receipts_root: hex('receiptsRoot'),
    sha3_uncles: hex('sha3Uncles'),
    size: integer('size', 0n),
    state_root: hex('stateRoot'),
    timestamp: integer('timestamp'),
    transactions_root: hex('transactionsRoot'),
    uncles: uncles.map((uncle) => String(uncle).toLowerCase()),
  }
}

/**
 * What every kind of transaction has. A deposit of a rollup has neither price nor signature. The price
 * in a block is what was paid; before, it is the most that may be paid, whatever a node guesses.
 */
function callOf(raw: RawFields, { isPending }: { isPending: boolean }) {
  const { isThere, big, hex, hexOrNull, integer, quantity } = readerOf(raw)
  const type = big('type', 0n)
  const most = isThere('maxFeePerGas') ? big('maxFeePerGas') : undefined
  const price = type === depositType ? 0n : most
  const isUnsigned = type === depositType ? 0n : undefined
  return {
    from: hex('from'),
    to: hexOrNull('to'),
    gas: integer('gas'),
    gas_price: isPending && most !== undefined ? toInteger(most) : integer('gasPrice', price),
    input: isThere('input') ? hex('input') : hex('data', '0x'),
    nonce: integer('nonce', isUnsigned),
    value: quantity('value'),
    r: quantity('r', isUnsigned),
    s: quantity('s', isUnsigned),
    v: isThere('v') ? quantity('v') : quantity('yParity', isUnsigned),
  }
}

/** The transaction record of spec 2.12, of a transaction that is in a block. */
export function toTransaction(raw: RawFields) {
  const { hex, integer } = readerOf(raw)
  return {
    transaction_hash: hex('hash'),
    block_number: integer('blockNumber'),
    block_hash: hex('blockHash'),
    ...callOf(raw, { isPending: false }),
    transaction_index: integer('transactionIndex'),
  }
}

/** The pending transaction record of spec 2.12, without the time that we give it. */
export function toPendingTransaction(raw: RawFields) {
  const { hex } = readerOf(raw)
  return { transaction_hash: hex('hash'), ...callOf(raw, { isPending: true }) }
}

/** Where a receipt names no price, as nodes of before London do, it is the one of its transaction. */
export const lacksPrice = (raw: RawFields): boolean =>
  !readerOf(raw).isThere('effectiveGasPrice') && readerOf(raw).big('type', 0n) !== depositType

/** The receipt record of spec 2.12. */
export function toReceipt(raw: RawFields, price = 0n) {
  const { hex, hexOrNull, integer } = readerOf(raw)
  return {
    transaction_hash: hex('transactionHash'),
    block_number: integer('blockNumber'),
    block_hash: hex('blockHash'),
    contract_address: hexOrNull('contractAddress'),
    cumulative_gas_used: integer('cumulativeGasUsed'),
    from: hex('from'),
    to: hexOrNull('to'),
    gas_used: integer('gasUsed'),
    logs_bloom: hex('logsBloom', none(256)),
    status: integer('status'),
    transaction_index: integer('transactionIndex'),
    effective_gas_price: integer('effectiveGasPrice', price),
  }
}

/** The log records of spec 2.12 of a receipt, in the order of the chain. */
export function toLogs(receipt: RawFields) {
  if (!Array.isArray(receipt.logs)) throw new MalformedAnswerError('logs is no array')
  return receipt.logs.map((raw: RawFields) => {
    const { hex, integer } = readerOf(raw)
    if (!Array.isArray(raw.topics)) throw new MalformedAnswerError('topics is no array')
    return {
      transaction_hash: hex('transactionHash'),
      address: hex('address'),
      data: hex('data', '0x'),
      topics: raw.topics.map((topic) => String(topic).toLowerCase()),
      block_number: integer('blockNumber'),
      block_hash: hex('blockHash'),
      transaction_index: integer('transactionIndex'),
      log_index: integer('logIndex'),
      removed: raw.removed === true,
    }
  })
}
