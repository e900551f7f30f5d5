import { createServer } from 'node:http'
import WebSocket, { WebSocketServer } from 'ws'

// The least that a program can do: one subscription to the node, and its messages to all clients.
const [node = ''] = process.argv.slice(2)
const server = createServer()
const sockets = new WebSocketServer({ server, perMessageDeflate: false })
const topics = ['newHeads', 'logs'] as const
const clients = { newHeads: new Set<WebSocket>(), logs: new Set<WebSocket>() }
sockets.on('connection', (socket) => {
  socket.on('message', (data) => {
    socket.send('{"jsonrpc":"2.0","id":1,"result":"0x1"}')
    clients[String(data).includes('"logs"') ? 'logs' : 'newHeads'].add(socket)
  })
  socket.on('close', () => {
    for (const topic of topics) clients[topic].delete(socket)
  })
})
const upstream = new WebSocket(node)
upstream.on('open', () => {
  for (const topic of topics)
    upstream.send(`{"jsonrpc":"2.0","id":1,"method":"eth_subscribe","params":["${topic}"]}`)
})
upstream.on('message', (data: Buffer) => {
  const text = String(data)
  if (!text.includes('"params"')) return
  const topic = text.includes('"logIndex"') ? 'logs' : 'newHeads'
  for (const client of clients[topic]) client.send(text)
})
server.listen(0, '127.0.0.1', 4_096, () => {
  const address = server.address()
  console.log(typeof address === 'object' ? address?.port : '')
})
