/** How a JSON-RPC parameter is written (spec 2.13). */
export type ParamType =
  | 'address'
  | 'block'
  | 'quantity'
  | 'hash'
  | 'data'
  | 'boolean'
  | 'call'
  | 'filter'
  | 'filterId'
  | 'subscription'
  | 'options'
  | 'overrides'

/** One parameter of a method; `extension` where the tables do not have it. */
export type RpcParam = { name: string; type: ParamType; optional?: true; extension?: true }

/** One method of spec 4.5. */
export type RpcMethod = {
  /** As in the tables; `evm_` stands for the prefix of the chain. */
  name: string
  params: readonly RpcParam[]
  result: string
  /** Not in the tables. */
  extension?: true
  /** `http` methods work over WebSocket too; `ws` ones are filters and subscriptions. */
  transport: 'http' | 'ws'
}

const address = { name: 'address', type: 'address' } as const
const block = { name: 'block', type: 'block' } as const
// The tables say required for some; what is left out means latest for clients and for most nodes.
const maybeBlock = { name: 'block', type: 'block', optional: true } as const
const blockHash = { name: 'block hash', type: 'hash' } as const
const hash = { name: 'transaction hash', type: 'hash' } as const
const index = { name: 'index', type: 'quantity' } as const
const full = { name: 'full transactions', type: 'boolean' } as const
// geth, Erigon, Nethermind, Besu, Reth and anvil take both, and clients send them.
const stateOverrides = {
  name: 'state overrides',
  type: 'overrides',
  optional: true,
  extension: true,
} as const
const blockOverrides = { ...stateOverrides, name: 'block overrides' } as const
const call = { name: 'call', type: 'call' } as const
const filter = { name: 'filter', type: 'filter' } as const
const filterId = { name: 'filter id', type: 'filterId' } as const

const http = (name: string, params: readonly RpcParam[], result: string): RpcMethod => ({
  name,
  params,
  result,
  transport: 'http',
})
const ws = (name: string, params: readonly RpcParam[], result: string): RpcMethod => ({
  name,
  params,
  result,
  transport: 'ws',
})

/** The 28 HTTP methods and the 7 of filters and subscriptions (spec 4.5), and extensions. */
export const rpcMethods: readonly RpcMethod[] = [
  http('web3_clientVersion', [], 'string'),
  http('net_version', [], 'string'),
  http('net_peerCount', [], 'quantity'),
  http('net_listening', [], 'boolean'),
  http('evm_protocolVersion', [], 'string'),
  http('evm_syncing', [], 'syncing'),
  http('evm_gasPrice', [], 'quantity'),
  http('evm_blockNumber', [], 'quantity'),
  http('evm_getBalance', [address, maybeBlock], 'quantity'),
  http(
    'evm_getStorageAt',
    [address, { name: 'storage position', type: 'quantity' }, maybeBlock],
    'data',
  ),
  http('evm_getTransactionCount', [address, maybeBlock], 'quantity'),
  http('evm_getBlockTransactionCountByHash', [blockHash], 'quantity'),
  http('evm_getBlockTransactionCountByNumber', [block], 'quantity'),
  http('evm_getUncleCountByBlockHash', [blockHash], 'quantity'),
  http('evm_getUncleCountByBlockNumber', [block], 'quantity'),
  http('evm_getCode', [address, maybeBlock], 'data'),
  http('evm_sendRawTransaction', [{ name: 'signed transaction', type: 'data' }], 'hash'),
  http('evm_call', [call, maybeBlock, stateOverrides, blockOverrides], 'data'),
  http('evm_estimateGas', [call, maybeBlock, stateOverrides, blockOverrides], 'quantity'),
  http('evm_getBlockByHash', [blockHash, full], 'block or null'),
  http('evm_getBlockByNumber', [block, full], 'block or null'),
  http('evm_getTransactionByHash', [hash], 'transaction or null'),
  http('evm_getTransactionByBlockHashAndIndex', [blockHash, index], 'transaction or null'),
  http('evm_getTransactionByBlockNumberAndIndex', [block, index], 'transaction or null'),
  http('evm_getTransactionReceipt', [hash], 'receipt or null'),
  http('evm_getUncleByBlockHashAndIndex', [blockHash, index], 'block or null'),
  http('evm_getUncleByBlockNumberAndIndex', [block, index], 'block or null'),
  http('evm_getLogs', [filter], 'logs'),
  ws('evm_newBlockFilter', [], 'filter id'),
  ws('evm_newFilter', [filter], 'filter id'),
  ws('evm_newPendingTransactionFilter', [], 'filter id'),
  ws('evm_getFilterChanges', [filterId], 'changes'),
  { ...ws('evm_getFilterLogs', [filterId], 'logs'), extension: true },
  ws('evm_uninstallFilter', [filterId], 'boolean'),
  ws(
    'evm_subscribe',
    [
      { name: 'subscription name', type: 'subscription' },
      // The table says required; every client in use leaves it out for newHeads (docs/decisions/requests.md).
      { name: 'options', type: 'options', optional: true },
    ],
    'subscription id',
  ),
  ws('evm_unsubscribe', [{ name: 'subscription id', type: 'filterId' }], 'boolean'),
]

/** What can be subscribed to (spec 6.2). */
export const subscriptions = ['newHeads', 'logs', 'newPendingTransactions', 'syncing'] as const

/** Notifications that a connection may hold back before it is closed (spec 6.2.3). */
export const notificationBuffer = 10_000
