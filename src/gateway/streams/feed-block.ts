// Blocks and logs in the form in which they are pushed. The text of a header, and of a log up to `removed`, is made once
// per block and not once per subscriber.

import { checkBlock } from '../../chains/evm/codec/header-hash.ts'
import type { Head, RawJson, RpcReply } from '../../chains/evm/pool/pool-types.ts'
import { answerFixes } from '../rpc/answers.ts'
import type { LogKeys } from '../rpc/topics.ts'

/** A log of a block, ready to be compared and sent. */
export type FeedLog = LogKeys & {
  /** Its JSON up to the field `removed`. */
  lead: RawJson
}

/** A block of the feed. */
export type FeedBlock = Head & {
  /** The header as it is pushed; empty while only its place in the chain is known. */
  header: RawJson
  bloom: string
  transactions: readonly string[]
  /** Its logs once they were needed. */
  logs: readonly FeedLog[] | undefined
  /** Its place in the order of all sent headers; 0 when it was not sent. */
  order: number
  /** Whether its logs were sent. */
  isLogged: boolean
}

// What geth leaves out of a header; the rest stays, so that fields of other chains get through.
const beside = new Set(['transactions', 'uncles', 'withdrawals', 'size', 'totalDifficulty'])
const hashPattern = /^0x[0-9a-f]{64}$/
const addressPattern = /^0x[0-9a-f]{40}$/

/** A block of which only its place in the chain is known. */
export const bareBlock = ({ number, hash, parent_hash, timestamp }: Head): FeedBlock => ({
  number,
  hash,
  parent_hash,
  timestamp,
  header: '',
  bloom: '',
  transactions: [],
  logs: undefined,
  order: 0,
  isLogged: false,
})

/** Reads the answer to `getBlockByHash`; undefined when it is not that block. */
export function readBlock(reply: RpcReply, hash: string): FeedBlock | undefined {
  // The same corrections as for answers of the gateway, so that pushed headers and read blocks are
  // equal.
  const fixed = answerFixes.evm_getBlockByHash?.(reply, []) ?? reply
  if (!fixed.ok || fixed.result === 'null') return undefined
  const block = parse(fixed.result)
  if (!isObject(block) || block.hash !== hash || checkBlock(block) === 'bad') return undefined
  const { number, parentHash, logsBloom, transactions } = block
  if (typeof number !== 'string' || typeof parentHash !== 'string') return undefined
  if (!hashPattern.test(parentHash)) return undefined
  const members = Object.entries(block).filter(([name]) => !beside.has(name))
  return {
    ...bareBlock({
      number: Number(number),
      hash,
      parent_hash: parentHash,
      timestamp: Number(block.timestamp) || 0,
    }),
    header: JSON.stringify(Object.fromEntries(members)),
    bloom: typeof logsBloom === 'string' ? logsBloom : '',
    transactions: Array.isArray(transactions) ? transactions.map(transactionHash) : [],
  }
}

const transactionHash = (transaction: unknown): string =>
  String(isObject(transaction) ? transaction.hash : transaction)

/** Reads the answer to `getLogs` of one block; undefined when it is not about that block. */
export function readLogs(reply: RpcReply, hash: string): FeedLog[] | undefined {
  if (!reply.ok) return undefined
  const fixed = answerFixes.evm_getLogs?.(reply, []) ?? reply
  const list = fixed.ok ? parse(fixed.result) : undefined
  if (!Array.isArray(list)) return undefined
  const logs: FeedLog[] = []
  for (const log of list) {
    const read = isObject(log) && log.blockHash === hash ? readLog(log) : undefined
    if (!read) return undefined
    logs.push(read)
  }
  return logs
}

// The text is cut once per log and shared by all subscribers; only `removed` differs between
// sending and taking back.
function readLog({ removed: _, ...log }: Record<string, unknown>): FeedLog | undefined {
  const { address, topics } = log
  if (typeof address !== 'string' || !Array.isArray(topics)) return undefined
  const own = address.toLowerCase()
  const keys = topics.map((topic) => String(topic).toLowerCase())
  if (!addressPattern.test(own) || !keys.every((key) => hashPattern.test(key))) return undefined
  return { address: own, topics: keys, lead: JSON.stringify(log).slice(0, -1) }
}

/** The log as it is sent. */
export const logText = ({ lead }: FeedLog, removed: boolean): RawJson =>
  `${lead},"removed":${removed}}`

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null

function parse(text: RawJson): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
