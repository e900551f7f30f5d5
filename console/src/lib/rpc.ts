/** A method of the gateway, with an example of its parameters. */
export type RpcExample = { method: string; about: string; params: readonly unknown[] }

const address = '0x0000000000000000000000000000000000000000'

/** The methods that the playground offers first. `eth_` may also be written with the prefix of the chain. */
export const rpcExamples: readonly RpcExample[] = [
  { method: 'eth_blockNumber', about: 'The number of the newest block.', params: [] },
  { method: 'eth_chainId', about: 'The id of the chain.', params: [] },
  { method: 'eth_gasPrice', about: 'The current price of gas.', params: [] },
  { method: 'eth_getBalance', about: 'The balance of an account.', params: [address, 'latest'] },
  {
    method: 'eth_getTransactionCount',
    about: 'The next nonce of an account.',
    params: [address, 'latest'],
  },
  { method: 'eth_getCode', about: 'The code of a contract.', params: [address, 'latest'] },
  {
    method: 'eth_getBlockByNumber',
    about: 'A block by its number or name.',
    params: ['latest', false],
  },
  {
    method: 'eth_getLogs',
    about: 'Logs of a range of blocks.',
    params: [{ fromBlock: 'latest', toBlock: 'latest' }],
  },
  {
    method: 'eth_call',
    about: 'Runs a call without a transaction.',
    params: [{ to: address, data: '0x' }, 'latest'],
  },
  { method: 'eth_estimateGas', about: 'The gas that a call needs.', params: [{ to: address }] },
  {
    method: 'eth_getTransactionByHash',
    about: 'A transaction by its hash.',
    params: [`0x${'0'.repeat(64)}`],
  },
  {
    method: 'eth_getTransactionReceipt',
    about: 'The receipt of a transaction.',
    params: [`0x${'0'.repeat(64)}`],
  },
  { method: 'eth_syncing', about: 'Whether the node is still syncing.', params: [] },
  { method: 'net_version', about: 'The id of the network.', params: [] },
  { method: 'web3_clientVersion', about: 'The software of the node.', params: [] },
  { method: 'eth_subscribe', about: 'New blocks as they come (WebSocket).', params: ['newHeads'] },
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
