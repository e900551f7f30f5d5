import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { CliError } from '../cli-error.ts'

/** One attempt of a delivery, as it came. */
export type ReceivedAttempt = { headers: IncomingHttpHeaders; body: Buffer }

// A notification is far smaller; more is not from a service of ours.
const maxBytes = 16 * 1024 * 1024

/** Starts an HTTP server that answers every POST with one status. */
export async function startReceiver(options: {
  port: number
  host: string
  status: number
  onDelivery(delivery: ReceivedAttempt): Promise<void>
}): Promise<{ url: string; stop(): Promise<void> }> {
  const { port, host, status, onDelivery } = options
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    let size = 0
    request.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size > maxBytes) request.destroy()
      else chunks.push(chunk)
    })
    request.on('end', async () => {
      if (request.method !== 'POST') return void response.writeHead(405, { allow: 'POST' }).end()
      await onDelivery({ headers: request.headers, body: Buffer.concat(chunks) })
      response.writeHead(status).end()
    })
  })
  server.listen(port, host)
  await Promise.race([
    once(server, 'listening'),
    once(server, 'error').then(([error]: { code?: string; message?: string }[]) => {
      throw new CliError(
        error?.code === 'EADDRINUSE'
          ? `Port ${port} is in use. Choose another one with --port.`
          : `Cannot listen on ${host}:${port}: ${error?.message}.`,
      )
    }),
  ])
  const address = server.address() as AddressInfo
  const name = address.address.includes(':') ? `[${address.address}]` : address.address
  return {
    url: `http://${name}:${address.port}/`,
    stop: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
