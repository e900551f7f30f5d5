import { hash } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type WebSocket, WebSocketServer } from 'ws'

/** A node that makes a block on command, with all fields of a header. */
export type BenchNode = { url: string; mine(): string; stop(): void }

const filler = `0x${'ab'.repeat(32)}`
const address = `0x${'cd'.repeat(20)}`
/** The bloom of the one log that every block has. */
const bloom = (() => {
  const bits = Buffer.alloc(256)
  for (const item of [address, filler]) {
    const hashed = hash('keccak-256', Buffer.from(item.slice(2), 'hex'), 'buffer')
    for (const at of [0, 2, 4]) {
      const bit = hashed.readUInt16BE(at) % 2048
      bits[255 - (bit >> 3)]! |= 1 << (bit & 7)
    }
  }
  return bits.toString('hex')
})()
const hashOf = (number: number) => `0x${number.toString(16).padStart(64, '0')}`
const headerOf = (number: number) =>
  `{"number":"0x${number.toString(16)}","hash":"${hashOf(number)}","parentHash":"${hashOf(number - 1)}","nonce":"0x0000000000000000","sha3Uncles":"${filler}","logsBloom":"0x${bloom}","transactionsRoot":"${filler}","stateRoot":"${filler}","receiptsRoot":"${filler}","miner":"0x${'cd'.repeat(20)}","difficulty":"0x0","extraData":"0x","gasLimit":"0x1c9c380","gasUsed":"0x5208","timestamp":"0x65","bench":true`
const blockOf = (number: number) => `${headerOf(number)},"uncles":[],"transactions":["${filler}"]}`
const logOf = (number: number) =>
  `{"address":"${address}","topics":["${filler}"],"data":"0x${'ef'.repeat(64)}","blockNumber":"0x${number.toString(16)}","blockHash":"${hashOf(number)}","transactionHash":"${filler}","transactionIndex":"0x0","logIndex":"0x0","removed":false}`

type Call = { id: number; method: string; params: [string & { blockHash: string }] }

/** Starts the node in this process. */
export async function startNode(): Promise<BenchNode> {
  const subscribers = { newHeads: new Set<WebSocket>(), logs: new Set<WebSocket>() }
  let head = 1_000
  const resultOf = ({ method, params }: Call): string => {
    if (method === 'eth_getBlockByHash') return blockOf(Number.parseInt(params[0]!, 16))
    if (method === 'eth_getBlockByNumber') return blockOf(head)
    if (method === 'eth_getLogs') return `[${logOf(Number.parseInt(params[0]!.blockHash, 16))}]`
    if (method === 'eth_chainId') return '"0x1"'
    if (method === 'eth_syncing') return 'false'
    if (method === 'eth_subscribe') return params[0] === 'logs' ? '"0x2"' : '"0x1"'
    return 'null'
  }
  const server = createServer()
  const sockets = new WebSocketServer({ server, perMessageDeflate: false })
  sockets.on('connection', (socket) => {
    socket.on('message', (data) => {
      const call: Call = JSON.parse(String(data))
      socket.send(`{"jsonrpc":"2.0","id":${call.id},"result":${resultOf(call)}}`)
      if (call.method !== 'eth_subscribe') return
      const topic = call.params[0] as string
      if (topic === 'newHeads' || topic === 'logs') subscribers[topic].add(socket)
    })
    socket.on('close', () => {
      subscribers.newHeads.delete(socket)
      subscribers.logs.delete(socket)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `ws://127.0.0.1:${(server.address() as AddressInfo).port}`,
    mine: () => {
      head++
      const push = (to: Set<WebSocket>, id: string, result: string) => {
        const params = `{"subscription":"${id}","result":${result}}`
        for (const socket of to)
          socket.send(`{"jsonrpc":"2.0","method":"eth_subscription","params":${params}}`)
      }
      push(subscribers.newHeads, '0x1', `${headerOf(head)}}`)
      push(subscribers.logs, '0x2', logOf(head))
      return hashOf(head)
    },
    stop: () => server.close(),
  }
}
