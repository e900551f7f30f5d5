import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { afterAll, onTestFinished, TestRunner } from 'vitest'
import { selfSigned } from './self-signed.ts'

/** A receiver that misbehaves. */
export type Behaviour = {
  url: string
  /** How many requests have come. */
  requests(): number
}

/** What the socket of a request does once the request is there. */
type Reaction = (socket: Socket) => void

const say = (text: string): Reaction => {
  return (socket) => void socket.write(text)
}
const empty = 'content-length: 0\r\n\r\n'

/** Every behaviour by name; what they are all alike in is that none of them takes a delivery. */
export const reactions: Record<string, Reaction> = {
  'answers 500': say(`HTTP/1.1 500 Oops\r\n${empty}`),
  'answers 404': say(`HTTP/1.1 404 Not Found\r\n${empty}`),
  'answers 429 with Retry-After': say(
    `HTTP/1.1 429 Too Many Requests\r\nretry-after: 3600\r\n${empty}`,
  ),
  'redirects with 302': say(`HTTP/1.1 302 Found\r\nlocation: /elsewhere\r\n${empty}`),
  'says nothing': () => {},
  'begins an answer and never ends its head': (socket) => {
    socket.write('HTTP/1.1 200 OK\r\n')
    const timer = setInterval(() => socket.write(`x-more: ${Date.now()}\r\n`), 20)
    socket.on('close', () => clearInterval(timer))
  },
  'resets the connection': (socket) => socket.resetAndDestroy(),
  'closes at once': (socket) => void socket.end(),
  'answers with bytes that are no HTTP': (socket) => {
    socket.write(Buffer.from('HTTP/1.1 200 OK\r\nx-bad\0header: \x01\x02\r\n\r\n', 'latin1'))
  },
}

/** What is a success anyway: the receiver has said 200. */
export const longWinded: Record<string, Reaction> = {
  'answers 200 with a body that never ends': (socket) => {
    socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n')
    const timer = setInterval(() => socket.write('1\r\nx\r\n'), 20)
    socket.on('close', () => clearInterval(timer))
  },
  'answers 200 with 1 GiB': (socket) => {
    socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${2 ** 30}\r\n\r\n`)
    const chunk = Buffer.alloc(65_536, 'x')
    const more = () => {
      while (!socket.destroyed && socket.write(chunk));
    }
    socket.on('drain', more)
    more()
  },
}

const serve = async (server: Server, scheme: string): Promise<string> => {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => {})
  })
  const stop = () => {
    for (const socket of sockets) socket.destroy()
    server.close()
  }
  if (TestRunner.getCurrentTest()) onTestFinished(stop)
  else afterAll(stop)
  return `${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}/`
}

/** Starts a receiver that reacts to each whole request in its way. */
export const startBehaviour = async (react: Reaction): Promise<Behaviour> => {
  let requests = 0
  const server = createServer((socket) => {
    let text = ''
    socket.on('error', () => {})
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1')
      const head = text.indexOf('\r\n\r\n')
      const length = Number(/content-length: (\d+)/i.exec(text)?.[1] ?? 0)
      if (head < 0 || text.length < head + 4 + length) return
      text = ''
      requests++
      react(socket)
    })
  })
  return { url: await serve(server, 'http'), requests: () => requests }
}

/** Starts a receiver with a self-signed certificate. */
export const startBadTls = async (): Promise<Behaviour> => {
  let requests = 0
  const server = createTlsServer(selfSigned, (socket) => {
    requests++
    socket.on('error', () => {})
  })
  server.on('tlsClientError', () => {})
  return { url: await serve(server, 'https'), requests: () => requests }
}
