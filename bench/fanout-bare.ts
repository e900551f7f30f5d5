import { createServer } from 'node:http'
import WebSocket, { WebSocketServer } from 'ws'

// The least that a program can do: one subscription to the node, and what it says to everybody.
const [node = ''] = process.argv.slice(2)
const server = createServer()
const sockets = new WebSocketServer({ server, perMessageDeflate: false })
const clients = new Set<WebSocket>()
sockets.on('connection', (socket) => {
  socket.on('message', () => {
    socket.send('{"jsonrpc":"2.0","id":1,"result":"0x1"}')
    clients.add(socket)
  })
  socket.on('close', () => clients.delete(socket))
})
const upstream = new WebSocket(node)
upstream.on('open', () =>
  upstream.send('{"jsonrpc":"2.0","id":1,"method":"eth_subscribe","params":["newHeads"]}'),
)
upstream.on('message', (data: Buffer) => {
  const text = String(data)
  if (text.includes('"params"')) for (const client of clients) client.send(text)
})
server.listen(0, '127.0.0.1', 4_096, () => {
  const address = server.address()
  console.log(typeof address === 'object' ? address?.port : '')
})
