import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

/** A connection on which a test writes bytes as it likes. */
export type RawConnection = {
  socket: Socket
  write(text: string | Uint8Array): void
  /** What came so far. */
  received(): string
  /** Resolves when the other side has closed. */
  closed: Promise<void>
  /** Waits until what came holds so many complete answers. */
  answers(count: number, timeoutMs?: number): Promise<RawAnswer[]>
  destroy(): void
}

/** An answer as it stood on the wire. */
export type RawAnswer = { status: number; headers: Record<string, string>; body: string }

/** Opens a connection to the service; one that holds on does not close when the other side does. */
export const openRaw = async (base_url: string, holdOn = false): Promise<RawConnection> => {
  const { hostname, port } = new URL(base_url)
  const socket = connect({ port: Number(port), host: hostname, allowHalfOpen: holdOn })
  let text = ''
  socket.setEncoding('latin1')
  const closed = new Promise<void>((resolve) => {
    socket.on('close', () => resolve())
  })
  socket.on('error', () => {})
  socket.on('data', (chunk: string) => {
    text += chunk
  })
  await once(socket, 'connect')
  return {
    socket,
    write: (bytes) => socket.write(bytes),
    received: () => text,
    closed,
    answers: async (count, timeoutMs = 10_000) => {
      const deadline = Date.now() + timeoutMs
      for (;;) {
        const found = parseAnswers(text)
        if (found.length >= count) return found
        if (socket.closed || Date.now() > deadline)
          throw new Error(`${found.length} of ${count} answers in: ${text.slice(0, 2_000)}`)
        const over = new AbortController()
        const more = once(socket, 'data', { signal: over.signal }).catch(() => {})
        await Promise.race([more, closed, new Promise((go) => setTimeout(go, 50))])
        over.abort()
      }
    },
    destroy: () => socket.destroy(),
  }
}

/** The complete answers in what came; interim ones (1xx) count as answers without a body. */
const parseAnswers = (text: string): RawAnswer[] => {
  const found: RawAnswer[] = []
  let rest = text
  for (;;) {
    const end = rest.indexOf('\r\n\r\n')
    if (end < 0) return found
    const [first = '', ...lines] = rest.slice(0, end).split('\r\n')
    const headers = Object.fromEntries(
      lines.map((line) => {
        const colon = line.indexOf(':')
        return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()]
      }),
    )
    const status = Number(first.split(' ')[1])
    const length = status < 200 ? 0 : Number(headers['content-length'] ?? 0)
    const begin = end + 4
    if (rest.length < begin + length) return found
    found.push({ status, headers, body: rest.slice(begin, begin + length) })
    rest = rest.slice(begin + length)
  }
}
