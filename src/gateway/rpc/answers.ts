// Corrections of what nodes answer (spec 2.13 and 7), by pattern on the text, so that what was right keeps its bytes. Only
// pending blocks and incomplete `syncing` objects are parsed and written again.

import type { RawJson, RpcReply } from '../../chains/evm/pool/pool-types.ts'
import { isMissingBlock, isUnknownMethod } from './node-errors.ts'

/**
 * Makes an answer right where nodes deviate from spec 2.13 and 7. Whatever needs no change keeps its
 * bytes; nothing is parsed for the sake of looking.
 */
export type FixAnswer = (reply: RpcReply, args: readonly unknown[]) => RpcReply

const quantityKeys = [
  ...['number', 'difficulty', 'totalDifficulty', 'size', 'timestamp', 'gasLimit', 'gasUsed'],
  ...['baseFeePerGas', 'blobGasUsed', 'excessBlobGas', 'blobGasPrice', 'effectiveGasPrice'],
  ...['blockNumber', 'transactionIndex', 'logIndex', 'blockTimestamp', 'cumulativeGasUsed'],
  ...['gas', 'gasPrice', 'value', 'maxFeePerGas', 'maxPriorityFeePerGas', 'maxFeePerBlobGas'],
  ...['type', 'status', 'chainId', 'v', 'r', 's', 'yParity'],
]
const keys = quantityKeys.join('|')
// Leading zeros, upper case, or a JSON number where a quantity belongs. A quote inside a string has
// a backslash before it, so that this cannot match inside of a text.
const oddQuantity = new RegExp(
  `("(?:${keys})": ?)(?:"0x(0[0-9a-fA-F]+|[0-9a-f]*[A-F][0-9a-fA-F]*)"|(\\d+)(?=[,}\\s]))`,
  'g',
)
// Looked for first, because it is much faster and nearly never there.
const suspicious =
  /": ?(?:\d|"0x0[0-9a-fA-F]{1,14}")|"(?:type|r|s)": ?"0x(?:0[0-9a-fA-F]|[0-9a-f]{0,2}[A-F])/
const notMined = /"blockHash": ?(?:null|"0x0{64}")/
const positions = /"(blockHash|blockNumber|transactionIndex)": ?(?:"[^"]*"|\d+)/g
// Some nodes write zeros, and some leave the field out, where the specification has null.
const noContract = /"contractAddress": ?"0x0{40}"/

const onResult =
  (fix: (result: RawJson, args: readonly unknown[]) => RawJson): FixAnswer =>
  (reply, args) => {
    if (!reply.ok || reply.result === 'null') return reply
    const result = fix(reply.result, args)
    return result === reply.result ? reply : { ok: true, result }
  }

const minimal = (digits: string): string => `"0x${digits.replace(/^0+(?=.)/, '').toLowerCase()}"`

const fixFields = (text: RawJson): RawJson =>
  suspicious.test(text)
    ? text.replace(oddQuantity, (_, key: string, hex?: string, decimal?: string) =>
        hex === undefined
          ? `${key}"0x${BigInt(decimal ?? 0).toString(16)}"`
          : `${key}${minimal(hex)}`,
      )
    : text

const fixQuantity = (result: RawJson): RawJson => {
  if (/^"0x(?:0|[1-9a-f][0-9a-f]*)"$/.test(result)) return result
  if (/^\d+$/.test(result)) return `"0x${BigInt(result).toString(16)}"`
  return /^"0x[0-9a-fA-F]+"$/.test(result) ? minimal(result.slice(3, -1)) : result
}

const fixTransaction = (text: RawJson): RawJson => {
  const fixed = fixFields(text)
  return notMined.test(fixed) ? fixed.replace(positions, '"$1":null') : fixed
}

const fixReceipt = (text: RawJson): RawJson => {
  const fixed = fixFields(text).replace(noContract, '"contractAddress":null')
  if (fixed.includes('"contractAddress"')) return fixed
  return `${fixed.slice(0, fixed.lastIndexOf('}'))},"contractAddress":null}`
}

const fixBlock = (text: RawJson, args: readonly unknown[]): RawJson =>
  args[0] === 'pending' ? fixPendingBlock(text) : fixFields(text)

// A block that is not in the chain yet: spec 2.13, null rules.
function fixPendingBlock(text: RawJson): RawJson {
  const block = JSON.parse(text) as Record<string, unknown>
  const { transactions } = block
  const nothing = { hash: null, logsBloom: null, nonce: null, number: null }
  const apart = { blockHash: null, blockNumber: null, transactionIndex: null }
  const own = Array.isArray(transactions)
    ? transactions.map((one) => (typeof one === 'object' ? { ...one, ...apart } : one))
    : transactions
  return fixFields(JSON.stringify({ ...block, ...nothing, transactions: own }))
}

const syncingFields = ['startingBlock', 'currentBlock', 'highestBlock']

// Erigon and others leave out where they began.
function fixSyncing(text: RawJson): RawJson {
  if (!text.startsWith('{') || syncingFields.every((name) => text.includes(`"${name}"`)))
    return text
  const zeros = Object.fromEntries(syncingFields.map((name) => [name, '0x0']))
  return JSON.stringify({ ...zeros, ...JSON.parse(text) })
}

const quantity = onResult(fixQuantity)
// `net_version` is a text; some nodes answer with a number.
const text = onResult((result) => (/^\d+$/.test(result) ? `"${result}"` : result))
// A storage slot has 32 bytes; some nodes leave out its leading zeros.
const storage = onResult((result) =>
  result.length < 68 && /^"0x[0-9a-fA-F]*"$/.test(result)
    ? `"0x${result.slice(3, -1).padStart(64, '0')}"`
    : result,
)

const nothing: RpcReply = { ok: true, result: 'null' }
const zero: RpcReply = { ok: true, result: '"0x0"' }

/** A query that finds no block, transaction or uncle has the result null (spec 7). */
const orNull =
  (fix: FixAnswer): FixAnswer =>
  (reply, args) =>
    !reply.ok && isMissingBlock(reply.error) ? nothing : fix(reply, args)

const block = orNull(onResult(fixBlock))
const transaction = orNull(
  onResult((result, args) =>
    fixTransaction(args[0] === 'pending' ? result.replace(positions, '"$1":null') : result),
  ),
)

/** What is done to the answers of a method, by the specification's name. */
export const answerFixes: Readonly<Record<string, FixAnswer>> = {
  net_version: text,
  net_peerCount: (reply) =>
    !reply.ok && isUnknownMethod(reply.error) ? zero : quantity(reply, []),
  evm_protocolVersion: onResult((result) => (/^\d+$/.test(result) ? fixQuantity(result) : result)),
  evm_syncing: onResult(fixSyncing),
  evm_gasPrice: quantity,
  evm_blockNumber: quantity,
  evm_getBalance: quantity,
  evm_getStorageAt: storage,
  evm_getTransactionCount: quantity,
  evm_getBlockTransactionCountByHash: orNull(quantity),
  evm_getBlockTransactionCountByNumber: orNull(quantity),
  evm_getUncleCountByBlockHash: orNull(quantity),
  evm_getUncleCountByBlockNumber: (reply, args) => {
    const fixed = orNull(quantity)(reply, args)
    // A block that is not in the chain yet has no uncles; anvil says that it does not find it.
    return args[0] === 'pending' && fixed.ok && fixed.result === 'null' ? zero : fixed
  },
  // Some nodes answer 0x0 for an account without code.
  evm_getCode: onResult((result) => (result === '"0x0"' ? '"0x"' : result)),
  evm_estimateGas: quantity,
  evm_getBlockByHash: block,
  evm_getBlockByNumber: block,
  evm_getTransactionByHash: transaction,
  evm_getTransactionByBlockHashAndIndex: transaction,
  evm_getTransactionByBlockNumberAndIndex: transaction,
  evm_getTransactionReceipt: onResult(fixReceipt),
  evm_getUncleByBlockHashAndIndex: block,
  evm_getUncleByBlockNumberAndIndex: block,
  // An error is never an empty list: to an indexer that would say that there are no logs.
  evm_getLogs: onResult(fixFields),
  evm_getFilterLogs: onResult(fixFields),
}
