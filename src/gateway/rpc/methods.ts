import type { Capability, RpcReply } from '../../chains/evm/pool/pool-types.ts'
import { rpcMethods } from '../../contract/operations/gateway.ts'
import { answerFixes, type FixAnswer } from './answers.ts'
import { type CheckParams, createParamsCheck } from './check-params.ts'
import { isNull } from './node-errors.ts'

/** What an answer depends on, and so how long it may be kept. */
export type Plan =
  /** On the moment: never kept. */
  | { kind: 'live' }
  /** On the chain alone. */
  | { kind: 'static' }
  /** The number of the head itself. */
  | { kind: 'blockNumber' }
  /** On the head. */
  | { kind: 'head' }
  /** On the block that a parameter names; `proof` is the field of the answer that identifies it. */
  | {
      kind: 'number'
      index: number
      proof?: 'hash' | 'blockHash'
      impliesLatest?: true
      /** Some nodes want the block although it may be left out: then it is written. */
      isWritten?: true
    }
  /** On the block whose hash is the first parameter. */
  | { kind: 'hash'; proof?: 'hash' | 'blockHash' }
  /** On the block that holds the transaction. */
  | { kind: 'transaction' }
  | { kind: 'logs' }
  | { kind: 'send' }
  | { kind: 'filter' }
  /** As `logs`, of a filter of the gateway. */
  | { kind: 'filterLogs' }
  | { kind: 'subscription' }

/** One method of the gateway. */
export type Method = {
  /** Position in counters. */
  index: number
  /** With the prefix of the chain: as it is sent to nodes, counted and measured. */
  name: string
  plan: Plan
  /** Absent for methods that the operator allowed: nodes check those themselves. */
  check: CheckParams | undefined
  fix: FixAnswer | undefined
  /** Whether an answer about a block that is in the chain calls for another node. */
  isUseless: ((reply: RpcReply) => boolean) | undefined
  /** Whether a null says that the block is not there, and not what was looked for in it. */
  isNullNoBlock: boolean
  /** What a node must be able to do, where only some can. */
  needs: Capability | undefined
  /** Whether its answers are blocks, which carry the proof of what they are. */
  isBlock: boolean
}

/** The methods that a network offers. */
export type Methods = {
  /** By the name that a client used, with the neutral prefix or the chain's own. */
  find(name: string): Method | undefined
  list: readonly Method[]
}

const state = (index: number): Plan => ({ kind: 'number', index })
const stateOrLatest = (index: number): Plan => ({
  kind: 'number',
  index,
  impliesLatest: true,
  isWritten: true,
})
const live: Plan = { kind: 'live' }

const plans: Readonly<Record<string, Plan>> = {
  net_version: { kind: 'static' },
  evm_chainId: { kind: 'static' },
  evm_gasPrice: { kind: 'head' },
  evm_blockNumber: { kind: 'blockNumber' },
  evm_getBalance: stateOrLatest(1),
  evm_getStorageAt: stateOrLatest(2),
  evm_getTransactionCount: stateOrLatest(1),
  evm_getCode: stateOrLatest(1),
  evm_call: { kind: 'number', index: 1, impliesLatest: true },
  // Without a block some nodes estimate on the pending one, so that only a named block is kept.
  evm_estimateGas: state(1),
  evm_getBlockTransactionCountByNumber: state(0),
  evm_getUncleCountByBlockNumber: state(0),
  evm_getBlockByNumber: { kind: 'number', index: 0, proof: 'hash' },
  evm_getTransactionByBlockNumberAndIndex: { kind: 'number', index: 0, proof: 'blockHash' },
  evm_getUncleByBlockNumberAndIndex: state(0),
  evm_getBlockReceipts: { kind: 'number', index: 0, proof: 'blockHash' },
  evm_getBlockTransactionCountByHash: { kind: 'hash' },
  evm_getUncleCountByBlockHash: { kind: 'hash' },
  evm_getBlockByHash: { kind: 'hash', proof: 'hash' },
  evm_getTransactionByBlockHashAndIndex: { kind: 'hash', proof: 'blockHash' },
  evm_getUncleByBlockHashAndIndex: { kind: 'hash' },
  evm_getTransactionByHash: { kind: 'transaction' },
  evm_getTransactionReceipt: { kind: 'transaction' },
  evm_getLogs: { kind: 'logs' },
  evm_sendRawTransaction: { kind: 'send' },
  evm_newBlockFilter: { kind: 'filter' },
  evm_newFilter: { kind: 'filter' },
  evm_newPendingTransactionFilter: { kind: 'filter' },
  evm_getFilterChanges: { kind: 'filter' },
  evm_getFilterLogs: { kind: 'filterLogs' },
  evm_uninstallFilter: { kind: 'filter' },
  evm_subscribe: { kind: 'subscription' },
  evm_unsubscribe: { kind: 'subscription' },
}

const needs: readonly { prefix: string; capability: Capability }[] = [
  { prefix: 'debug_trace', capability: 'debug_trace' },
  { prefix: 'trace_', capability: 'parity_trace' },
  { prefix: 'txpool_', capability: 'txpool' },
]

const stateMethods = new Set([
  'evm_getBalance',
  'evm_getStorageAt',
  'evm_getTransactionCount',
  'evm_getCode',
  'evm_call',
  'evm_estimateGas',
])

const ofWholeBlocks = new Set([
  'evm_getBlockByNumber',
  'evm_getBlockTransactionCountByNumber',
  'evm_getUncleCountByBlockNumber',
  'evm_getBlockReceipts',
  'evm_getBlockByHash',
  'evm_getBlockTransactionCountByHash',
  'evm_getUncleCountByBlockHash',
])

/** The methods of spec 4.5 and those that the operator allows, for a chain with this prefix. */
export function createMethods({
  prefix,
  allowed,
}: {
  prefix: string
  allowed: readonly string[]
}): Methods {
  const byName = new Map<string, Method>()
  const list: Method[] = []
  const neutral = (name: string) =>
    name.startsWith(`${prefix}_`) ? `evm_${name.slice(prefix.length + 1)}` : name
  const add = (neutralName: string, check: CheckParams | undefined) => {
    if (byName.has(neutralName)) return
    const isChains = neutralName.startsWith('evm_')
    const name = isChains ? `${prefix}_${neutralName.slice(4)}` : neutralName
    const method: Method = {
      index: list.length,
      name,
      plan: plans[neutralName] ?? live,
      check,
      fix: answerFixes[neutralName],
      isUseless: uselessOf(neutralName),
      isNullNoBlock: ofWholeBlocks.has(neutralName),
      needs: needs.find(({ prefix }) => neutralName.startsWith(prefix))?.capability,
      isBlock: neutralName === 'evm_getBlockByHash' || neutralName === 'evm_getBlockByNumber',
    }
    list.push(method)
    byName.set(neutralName, method)
    byName.set(name, method)
  }
  for (const { name, params } of rpcMethods)
    add(name, createParamsCheck(params, { stateOf: stateMethods.has(name) }))
  for (const name of allowed) add(neutral(name), undefined)
  return { find: (name) => byName.get(name), list }
}

// What the errors of nodes mean is the business of the pool.
function uselessOf(neutralName: string): Method['isUseless'] {
  const plan = plans[neutralName] ?? live
  return plan.kind === 'number' && !stateMethods.has(neutralName) ? isNull : undefined
}
