import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { Webhook } from 'standardwebhooks'
import { afterAll } from 'vitest'

// biome-ignore lint/suspicious/noExplicitAny: tests look at members of any notification
type Body = any

/** An endpoint that takes deliveries whose signature an independent library accepts. */
export type Receiver = {
  url: string
  /** Set before the first delivery. */
  secret: string
  bodies: Body[]
  refused: string[]
}

/** Starts an endpoint on loopback; it ends with the file. */
export async function startReceiver(): Promise<Receiver> {
  const receiver: Receiver = { url: '', secret: '', bodies: [], refused: [] }
  const server = createServer(async (request, response) => {
    const body = await text(request)
    try {
      const headers = request.headers as Record<string, string>
      receiver.bodies.push(new Webhook(receiver.secret).verify(body, headers))
      response.writeHead(204).end()
    } catch (error) {
      receiver.refused.push(String(error))
      response.writeHead(401).end()
    }
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  afterAll(() => {
    server.close()
    server.closeAllConnections()
  })
  receiver.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  return receiver
}
