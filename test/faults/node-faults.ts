/** What can be wrong with the nodes of a world for a while. */
export const nodeFaults = [
  'all unreachable',
  'tracer unreachable',
  'no debug API',
  'traces temporarily unavailable',
  'traces pruned',
  'history temporarily unavailable',
  'history pruned',
  'header not found',
  'not canonical',
  'state pruned',
  'traces broken',
  'blocks broken',
  'blocks broken at one node',
] as const

/** One of them. */
export type NodeFault = (typeof nodeFaults)[number]

/** Whether another node has all that is asked for: then nothing may be missing while it lasts. */
export const leavesAnother = (fault: NodeFault | undefined): boolean =>
  fault === 'blocks broken at one node'

/** A call of JSON-RPC. */
export type RpcCall = { id: unknown; method: string; params?: unknown[] }

type RpcError = { code: number; message: string }

/** What the node knows of the chain. */
type Setup = {
  head(): Promise<number>
  numberOf(hash: string): Promise<number | undefined>
  /** How many blocks behind the newest one still have their state. */
  depth(): number
}

const isTrace = (method: string): boolean => /^(?:debug|trace)_/.test(method)
const stateMethods = new Set(['eth_getBalance', 'eth_call'])
const historyMethods = new Set([
  'eth_getBlockByNumber',
  'eth_getBlockReceipts',
  'eth_getTransactionReceipt',
])

const noMethod = (method: string): RpcError => ({
  code: -32601,
  message: `the method ${method} does not exist/is not available`,
})
const server = (message: string): RpcError => ({ code: -32000, message })
// Words of no client that is known here: a proxy's, or those of a damaged database.
const unknown: RpcError = { code: -32603, message: 'Internal error' }
// In the words of geth: trie/trie.go, eth/state_accessor.go, core/history.
const missingNode = (number: number): RpcError =>
  server(
    `missing trie node ${number.toString(16).padStart(64, '0')} (path ) state is not available`,
  )

/** The error that a node gives to a call, if it does. */
export const errorOf = async (
  setup: Setup,
  { method, params = [] }: RpcCall,
  { fault, isPlain }: { fault: NodeFault | undefined; isPlain: boolean },
): Promise<RpcError | undefined> => {
  if (isTrace(method)) {
    if (isPlain || fault === 'no debug API') return noMethod(method)
    if (fault === 'traces temporarily unavailable') return server('temporarily unavailable')
    if (fault === 'traces broken') return server('tracing failed')
    if (fault === 'traces pruned')
      return server('required historical state unavailable (reexec=128)')
    return undefined
  }
  if (historyMethods.has(method)) {
    const [where] = params
    // The newest block and the first one are always there.
    if (where === 'latest' || where === '0x0') return undefined
    if (fault === 'history temporarily unavailable')
      return server('historical data is temporarily unavailable')
    if (fault === 'blocks broken') return unknown
    if (fault === 'blocks broken at one node' && !isPlain) return unknown
    if (fault === 'history pruned') return { code: 4444, message: 'pruned history unavailable' }
    return undefined
  }
  if (!stateMethods.has(method)) return undefined
  const number = await placeOf(setup, params[1])
  if (number === undefined) return undefined
  if (fault === 'header not found') return server('header not found')
  if (fault === 'not canonical') return server('hash is not currently canonical')
  const behind = (await setup.head()) - number
  if (fault === 'state pruned' || behind >= setup.depth()) return missingNode(number)
  return undefined
}

/** The number of the block at which a state is asked for; undefined for the newest one. */
const placeOf = async ({ numberOf }: Setup, where: unknown): Promise<number | undefined> => {
  if (typeof where === 'object' && where !== null) {
    const { blockHash } = where as { blockHash?: string }
    return blockHash === undefined ? undefined : await numberOf(blockHash)
  }
  return typeof where === 'string' && where.startsWith('0x') ? Number(where) : undefined
}
