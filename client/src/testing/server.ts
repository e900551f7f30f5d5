import { createHmac } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'

/** A request as the server saw it. */
export type Seen = {
  method: string
  path: string
  headers: IncomingMessage['headers']
  body: Buffer
}

/** Answers the n-th request, counted from 0. */
export type Handler = (seen: Seen, response: ServerResponse, index: number) => unknown

/** A real HTTP server on loopback, closed when the test ends; `seen` holds what arrived. */
export async function listen(handler: Handler): Promise<{ base_url: string; seen: Seen[] }> {
  const seen: Seen[] = []
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const { method = '', url = '', headers } = request
    const arrived = { method, path: url, headers, body: Buffer.concat(chunks) }
    await handler(arrived, response, seen.push(arrived) - 1)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return { base_url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen }
}

/** A closed port. */
export async function closedPort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}

/** Answers with JSON. */
export function reply(
  response: ServerResponse,
  status: number,
  value: unknown,
  headers: Record<string, string> = {},
): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers })
  response.end(JSON.stringify(value))
}

/** A problem body as the service writes it. */
export const problem = (status: number, code: string, reason: string, more: object = {}) => ({
  type: `/docs/errors/${reason}`,
  title: 'Title',
  status,
  detail: 'What went wrong.',
  code,
  reason,
  request_id: 'r-1',
  ...more,
})

/** The signature that the documentation asks for, computed without the client's code. */
export const expectedSignature = ({ method, path, headers, body }: Seen, secret: string) =>
  createHmac('sha256', secret)
    .update(`${headers['x-api-nonce']}${method}${path}`)
    .update(body)
    .digest('hex')
