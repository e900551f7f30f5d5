import { once } from 'node:events'
import { onTestFinished } from 'vitest'
import WebSocket from 'ws'
import { waitFor } from '../helpers/wait-for.ts'

// biome-ignore lint/suspicious/noExplicitAny: tests look at members of any message
type Message = any

/** A WebSocket client that keeps everything it gets. */
export type TestClient = {
  ws: WebSocket
  messages: Message[]
  /** The results that a subscription has pushed. */
  pushes(subscription: string): Message[]
  send(text: string): void
  /** Makes a call and returns its whole answer. */
  call(method: string, params?: unknown[]): Promise<Message>
  subscribe(name: string, options?: unknown): Promise<string>
  closed: Promise<{ code: number; reason: string }>
}

/** Connects; fails when the handshake is refused. */
export async function connect(url: string): Promise<TestClient> {
  const ws = new WebSocket(url, { perMessageDeflate: true })
  const messages: Message[] = []
  ws.on('message', (data) => messages.push(JSON.parse(String(data))))
  const closed = new Promise<{ code: number; reason: string }>((resolve) =>
    ws.on('close', (code, reason) => resolve({ code, reason: String(reason) })),
  )
  await once(ws, 'open')
  ws.on('error', () => {})
  onTestFinished(() => ws.terminate())
  let id = 0
  const call = async (method: string, params: unknown[] = []) => {
    const own = ++id
    ws.send(JSON.stringify({ jsonrpc: '2.0', id: own, method, params }))
    let answer: Message
    await waitFor(`the answer to ${method}`, () => {
      answer = messages.find((message) => message.id === own)
      return answer !== undefined
    })
    return answer
  }
  return {
    ws,
    messages,
    closed,
    send: (text) => ws.send(text),
    call,
    subscribe: async (name, options) => {
      const params = options === undefined ? [name] : [name, options]
      return (await call('evm_subscribe', params)).result
    },
    pushes: (subscription) =>
      messages
        .filter(({ params }) => params?.subscription === subscription)
        .map(({ params }) => params.result),
  }
}

/** The status and body of a handshake that is refused. */
export const refusalOf = (url: string): Promise<{ status: number; body: Message }> =>
  new Promise((resolve, reject) => {
    const ws = new WebSocket(url)
    ws.on('open', () => reject(new Error('the handshake was not refused')))
    ws.on('error', () => {})
    ws.on('unexpected-response', (_, response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk) => chunks.push(chunk))
      response.on('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          body: JSON.parse(String(Buffer.concat(chunks))),
        }),
      )
    })
  })
