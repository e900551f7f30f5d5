/** A method of the gateway, with an example of its parameters. */
export type RpcExample = { method: string; about: string; params: readonly unknown[] }

const address = '0x0000000000000000000000000000000000000000'
const hash = `0x${'0'.repeat(64)}`
const latest = 'latest'
const at = { fromBlock: latest, toBlock: latest }

const example = (method: string, about: string, ...params: unknown[]): RpcExample => ({
  ...{ method, about, params },
})

/** The methods of the gateway. `eth_` may also be written with the prefix of the chain. */
export const rpcExamples: readonly RpcExample[] = [
  example('eth_blockNumber', 'The number of the newest block.'),
  example('eth_chainId', 'The id of the chain.'),
  example('eth_gasPrice', 'The current price of gas, in the smallest unit.'),
  example('eth_getBalance', 'The balance of an account at a block.', address, latest),
  example('eth_getTransactionCount', 'The next nonce of an account.', address, latest),
  example('eth_getCode', 'The code of a contract.', address, latest),
  example('eth_getStorageAt', 'One word of the storage of a contract.', address, '0x0', latest),
  example('eth_call', 'Runs a call without a transaction.', { to: address, data: '0x' }, latest),
  example('eth_estimateGas', 'The gas that a call needs.', { to: address }),
  example('eth_getLogs', 'Logs of a range of blocks, by address and topics.', at),
  example('eth_getBlockByNumber', 'A block; true for whole transactions.', latest, false),
  example('eth_getBlockByHash', 'A block; true for whole transactions.', hash, false),
  example('eth_getBlockTransactionCountByNumber', 'How many transactions a block has.', latest),
  example('eth_getBlockTransactionCountByHash', 'How many transactions a block has.', hash),
  example('eth_getTransactionByHash', 'A transaction, pending ones too.', hash),
  example('eth_getTransactionByBlockNumberAndIndex', 'A transaction by its place.', latest, '0x0'),
  example('eth_getTransactionByBlockHashAndIndex', 'A transaction by its place.', hash, '0x0'),
  example('eth_getTransactionReceipt', 'The receipt of a transaction, or null.', hash),
  example('eth_getUncleCountByBlockNumber', 'How many uncles a block has.', latest),
  example('eth_getUncleCountByBlockHash', 'How many uncles a block has.', hash),
  example('eth_getUncleByBlockNumberAndIndex', 'An uncle of a block.', latest, '0x0'),
  example('eth_getUncleByBlockHashAndIndex', 'An uncle of a block.', hash, '0x0'),
  example('eth_sendRawTransaction', 'Sends a signed transaction to the nodes.', '0x'),
  example('eth_subscribe', 'New blocks as they come (WebSocket).', 'newHeads'),
  example('eth_unsubscribe', 'Ends a subscription of this connection.', '0x0'),
  example('eth_newBlockFilter', 'A filter of new blocks; poll it with eth_getFilterChanges.'),
  example('eth_newFilter', 'A filter of logs.', { address }),
  example('eth_newPendingTransactionFilter', 'A filter of pending transactions.'),
  example('eth_getFilterChanges', 'What is new since the last poll.', '0x0'),
  example('eth_getFilterLogs', 'All logs that a filter matches.', '0x0'),
  example('eth_uninstallFilter', 'Removes a filter.', '0x0'),
  example('eth_syncing', 'Whether the node is still syncing.'),
  example('eth_protocolVersion', 'The version of the protocol of the nodes.'),
  example('net_version', 'The id of the network.'),
  example('net_peerCount', 'How many peers the node has.'),
  example('net_listening', 'Whether the node accepts peers.'),
  example('web3_clientVersion', 'The software of the node.'),
]

/** A request of the gateway; a list of them is a batch. */
export function rpcBody(text: string): { body: string; isSubscription: boolean } {
  const parsed: unknown = JSON.parse(text)
  const requests = Array.isArray(parsed) ? parsed : [parsed]
  for (const request of requests)
    if (
      typeof request !== 'object' ||
      request === null ||
      typeof (request as { method?: unknown }).method !== 'string'
    )
      throw new Error('Each request is an object with a method.')
  const isSubscription = requests.some(({ method }) => /_(?:un)?subscribe$|ilter/.test(method))
  return { body: JSON.stringify(parsed), isSubscription }
}

/** The text of a request with its usual fields. */
export const rpcRequest = (method: string, params: readonly unknown[]): string =>
  JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }, null, 2)

/** A request of the playground and its answer. The key is in the address, so it is in neither. */
export type RpcEntry = { id: number; request: string; answer: string; ms: number; isError: boolean }

const maxHistory = 30
// The history lives in the memory of the tab.
const maxHistoryCharacters = 1_000_000

/** Adds an entry in front, and drops the oldest ones beyond the bounds. */
export function withEntry(entries: readonly RpcEntry[], entry: RpcEntry): RpcEntry[] {
  let characters = 0
  return [entry, ...entries].slice(0, maxHistory).filter(({ request, answer }, index) => {
    characters += request.length + answer.length
    return index === 0 || characters <= maxHistoryCharacters
  })
}
