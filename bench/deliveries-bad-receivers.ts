import { type AddressInfo, createServer, type Socket } from 'node:net'

const empty = 'content-length: 0\r\n\r\n'
const say = (text: string) => (socket: Socket) => void socket.write(text)

// Receivers that fail, in a process of their own, so that what they do costs the courier nothing.
// What each of them does with a request; the first one is silent.
const reactions: ((socket: Socket) => void)[] = [
  // Says nothing.
  () => {},
  say('HTTP/1.1 200 OK\r\nx-more'),
  say(`HTTP/1.1 500 Oops\r\n${empty}`),
  say(`HTTP/1.1 404 Not Found\r\n${empty}`),
  say(`HTTP/1.1 429 Too Many Requests\r\nretry-after: 3600\r\n${empty}`),
  say(`HTTP/1.1 302 Found\r\nlocation: /elsewhere\r\n${empty}`),
  (socket) => socket.resetAndDestroy(),
  (socket) => void socket.end(),
  say('HTTP/1.1 200 OK\r\nx-bad\0header: \u0001\r\n\r\n'),
  (socket) => {
    socket.write(`HTTP/1.1 500 Oops\r\ncontent-length: ${2 ** 30}\r\n\r\n`)
    const chunk = Buffer.alloc(65_536, 'x')
    const more = () => {
      while (!socket.destroyed && socket.write(chunk));
    }
    socket.on('drain', more)
    more()
  },
  // Begins a body that never ends.
  say('HTTP/1.1 500 Oops\r\ncontent-length: 1000\r\n\r\nx'),
]

const sockets = new Set<Socket>()
const urls: string[] = []
for (const react of reactions) {
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {}).on('close', () => sockets.delete(socket))
    socket.once('data', () => react(socket))
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  urls.push(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`)
}
// A closed port.
urls.push('http://127.0.0.1:1025/')
console.log(JSON.stringify(urls))
