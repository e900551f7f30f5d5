import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type WebSocket, WebSocketServer } from 'ws'

/** A node that makes a block when it is told to, with all fields of a header. */
export type BenchNode = { url: string; mine(): string; stop(): void }

const filler = `0x${'ab'.repeat(32)}`
const hashOf = (number: number) => `0x${number.toString(16).padStart(64, '0')}`
const headerOf = (number: number) =>
  `{"number":"0x${number.toString(16)}","hash":"${hashOf(number)}","parentHash":"${hashOf(number - 1)}","nonce":"0x0000000000000000","sha3Uncles":"${filler}","logsBloom":"0x${'00'.repeat(256)}","transactionsRoot":"${filler}","stateRoot":"${filler}","receiptsRoot":"${filler}","miner":"0x${'cd'.repeat(20)}","difficulty":"0x0","extraData":"0x","gasLimit":"0x1c9c380","gasUsed":"0x5208","timestamp":"0x65","bench":true`
const blockOf = (number: number) => `${headerOf(number)},"uncles":[],"transactions":[]}`

type Call = { id: number; method: string; params: string[] }

/** Starts the node in this process. */
export async function startNode(): Promise<BenchNode> {
  const subscribers = new Set<WebSocket>()
  let head = 1_000
  const resultOf = ({ method, params }: Call): string => {
    if (method === 'eth_getBlockByHash') return blockOf(Number.parseInt(params[0]!, 16))
    if (method === 'eth_getBlockByNumber') return blockOf(head)
    if (method === 'eth_chainId') return '"0x1"'
    if (method === 'eth_syncing') return 'false'
    return method === 'eth_subscribe' ? '"0x1"' : 'null'
  }
  const server = createServer()
  const sockets = new WebSocketServer({ server, perMessageDeflate: false })
  sockets.on('connection', (socket) => {
    socket.on('message', (data) => {
      const call: Call = JSON.parse(String(data))
      socket.send(`{"jsonrpc":"2.0","id":${call.id},"result":${resultOf(call)}}`)
      if (call.method === 'eth_subscribe' && call.params[0] === 'newHeads') subscribers.add(socket)
    })
    socket.on('close', () => subscribers.delete(socket))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `ws://127.0.0.1:${(server.address() as AddressInfo).port}`,
    mine: () => {
      const params = `{"subscription":"0x1","result":${headerOf(++head)}}}`
      for (const socket of subscribers)
        socket.send(`{"jsonrpc":"2.0","method":"eth_subscription","params":${params}}`)
      return hashOf(head)
    },
    stop: () => server.close(),
  }
}
