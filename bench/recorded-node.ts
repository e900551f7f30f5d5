// A node over HTTP whose chain of token transfers grows on command, so that a tracker has something to catch up with. In
// a process of its own; commands and their acknowledgement are messages.

import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { recordChain } from './lib/recorded-chain.ts'

/** Who receives the transfers: so many addresses from a number on. */
export type Receivers = { first: number; count: number }

/** A command: make so many blocks, or show those that were made. */
export type RecordedNodeOrder = { grow: number } | { show: true }

type Call = { id: number; method: string; params?: unknown[] }

// More than the tracker keeps for reorganizations.
const keptBlocks = 1_000
const chainCalls = new Set([
  ...['eth_chainId', 'eth_blockNumber', 'eth_getBlockByNumber', 'eth_getBlockByHash'],
  ...['eth_getBlockReceipts', 'eth_call'],
])
const word = (number: number) => number.toString(16).padStart(64, '0')
const text = `0x${word(32)}${word(3)}${Buffer.from('TKN').toString('hex').padEnd(64, '0')}`
/** Decimals, name and symbol of every token, by the selector. */
const metadata: Readonly<Record<string, string>> = {
  '0x313ce567': `0x${word(18)}`,
  '0x06fdde03': text,
  '0x95d89b41': text,
}

const { first, count }: Receivers = JSON.parse(process.argv[2]!)
const chain = recordChain({
  ...{ blocks: 0, transfers: 50 },
  receiver: (index) => first + (((index * 7_919) ^ (index >> 3)) % count),
})
const resultOf = ({ method, params = [] }: Call): string | undefined => {
  if (method === 'eth_syncing') return 'false'
  if (method === 'net_version') return '"1"'
  if (method === 'web3_clientVersion') return '"recorded"'
  if (method === 'eth_getCode') return '"0x00"'
  if (method === 'eth_getBalance') return '"0x0"'
  if (!chainCalls.has(method)) return undefined
  const [call] = params as [{ data?: string; input?: string }?]
  const known = method === 'eth_call' && metadata[(call?.data ?? call?.input ?? '').slice(0, 10)]
  return known ? `"${known}"` : chain.answer(method, JSON.stringify(params))
}
const replyTo = (call: Call): string => {
  const result = resultOf(call)
  const outcome =
    result === undefined
      ? '"error":{"code":-32601,"message":"the method does not exist"}'
      : `"result":${result}`
  return `{"jsonrpc":"2.0","id":${JSON.stringify(call.id)},${outcome}}`
}
const server = createServer(async (request, response) => {
  const body = JSON.parse(Buffer.concat(await request.toArray()).toString())
  response.setHeader('content-type', 'application/json')
  response.end(Array.isArray(body) ? `[${body.map(replyTo)}]` : replyTo(body))
})
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo
  process.send!({ url: `http://127.0.0.1:${port}`, contracts: chain.contracts })
})
process.on('message', (order: RecordedNodeOrder) => {
  if ('grow' in order) chain.grow(order.grow, Math.max(0, chain.top() - keptBlocks))
  else chain.advance(chain.top())
  process.send!({ top: chain.top() })
})
process.on('disconnect', () => process.exit())
