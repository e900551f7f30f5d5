import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, onTestFinished, TestRunner } from 'vitest'

/** A delivery as it came. */
export type Received = {
  path: string
  headers: IncomingHttpHeaders
  /** With all values of a header that came more than once. */
  headersDistinct: NodeJS.Dict<string[]>
  body: string
  // biome-ignore lint/suspicious/noExplicitAny: tests look at members of any body
  json: any
}

/** A receiver of deliveries on this machine. */
export type TestReceiver = {
  url: string
  received: Received[]
  /** How many connections were opened. */
  connections(): number
  /** What to answer; 204 to begin with. */
  answer(reply: (response: ServerResponse, delivery: Received) => void): void
  stop(): Promise<void>
}

/** Listens on loopback until the test or file ends. */
export const startReceiver = async (): Promise<TestReceiver> => {
  const received: Received[] = []
  let reply = (response: ServerResponse, _delivery: Received): void => {
    response.writeHead(204).end()
  }
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk) => chunks.push(chunk))
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString('utf8')
      const { url: path = '', headers, headersDistinct } = request
      const delivery = { path, headers, headersDistinct, body, json: JSON.parse(body) }
      received.push(delivery)
      reply(response, delivery)
    })
  })
  let connections = 0
  server.on('connection', () => connections++)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const receiver: TestReceiver = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    received,
    connections: () => connections,
    answer: (next) => {
      reply = next
    },
    stop: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  if (TestRunner.getCurrentTest()) onTestFinished(receiver.stop)
  else afterAll(receiver.stop)
  return receiver
}
