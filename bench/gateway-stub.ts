import { createServer } from 'node:http'
import { WebSocketServer } from 'ws'
import { hashOfHeader } from '../src/chains/evm/codec/header-hash.ts'

// A node that answers at once: singles and batches over HTTP and WebSocket, any block up to the head, each
// with the hash of its header.
const head = 0x10_000_000
const filler = `0x${'ab'.repeat(32)}`
const rest = {
  parentHash: filler,
  nonce: '0x0000000000000000',
  sha3Uncles: filler,
  logsBloom: `0x${'00'.repeat(256)}`,
  transactionsRoot: filler,
  stateRoot: filler,
  receiptsRoot: filler,
  miner: `0x${'cd'.repeat(20)}`,
  difficulty: '0x0',
  extraData: '0x',
  size: '0x220',
  gasLimit: '0x1c9c380',
  gasUsed: '0x5208',
  timestamp: '0x65',
  mixHash: filler,
  baseFeePerGas: '0x7',
  uncles: [],
  transactions: [filler],
}
const restText = JSON.stringify(rest).slice(1)

const block = (height: number) => {
  const number = `0x${height.toString(16)}`
  return `{"number":"${number}","hash":"${hashOfHeader({ ...rest, number })}",${restText}`
}

const word = `"0x${'0'.repeat(63)}1"`

type Call = { id: number; method: string; params: unknown[] }

function resultOf({ method, params }: Call): string {
  if (method === 'eth_getBlockByNumber')
    return block(params[0] === 'latest' ? head : Number.parseInt(String(params[0]), 16))
  if (method === 'eth_call') return word
  if (method === 'eth_chainId') return '"0x1"'
  if (method === 'eth_syncing') return 'false'
  if (method === 'eth_subscribe') return '"0x1"'
  return 'null'
}
const answer = (call: Call) => `{"jsonrpc":"2.0","id":${call.id},"result":${resultOf(call)}}`
const respond = (text: string) => {
  const calls: Call | Call[] = JSON.parse(text)
  return Array.isArray(calls) ? `[${calls.map(answer).join(',')}]` : answer(calls)
}

const server = createServer((request, response) => {
  let body = ''
  request.setEncoding('latin1')
  request.on('data', (chunk: string) => {
    body += chunk
  })
  request.on('end', () => {
    const text = respond(body)
    response.writeHead(200, [
      'content-type',
      'application/json',
      'content-length',
      `${text.length}`,
    ])
    response.end(text, 'latin1')
  })
})
const sockets = new WebSocketServer({ server, perMessageDeflate: false })
sockets.on('connection', (socket) => {
  socket.on('message', (data) => socket.send(respond(String(data))))
})
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  console.log(typeof address === 'object' ? address?.port : '')
})
