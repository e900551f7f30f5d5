import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { Anvil } from '../../devnet/anvil/anvil.ts'

/** What a node does with a transaction: takes it or not, and what it says. */
export type Manner = {
  takes: boolean
  says: 'the truth' | 'nothing' | '502' | 'reset' | { message: string; code?: number }
}

/** A node of its own manner in front of an anvil; everything but transactions is as it is. */
export type ScriptedNode = { url: string; manner: Manner; stop(): Promise<void> }

type Call = { id: number; method: string; params: unknown[] }

/** The manner of a plain node. */
export const plain: Manner = { takes: true, says: 'the truth' }

/** Starts one. */
export async function startScriptedNode(anvil: Anvil): Promise<ScriptedNode> {
  const sockets = new Set<Socket>()
  const forward = async (body: unknown): Promise<string> => {
    const answer = await fetch(anvil.url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    return await answer.text()
  }
  const end = (response: ServerResponse, status: number, text: string) => {
    response.writeHead(status, { 'content-length': Buffer.byteLength(text) })
    response.end(text)
  }
  const handle = async (response: ServerResponse, body: Call | Call[]): Promise<void> => {
    const calls = Array.isArray(body) ? body : [body]
    const { takes, says } = node.manner
    const isSent = calls.some(({ method }) => method === 'eth_sendRawTransaction')
    if (!isSent || (takes && says === 'the truth')) {
      end(response, 200, await forward(body))
      return
    }
    const texts: string[] = []
    for (const call of calls) {
      const isHit = call.method === 'eth_sendRawTransaction'
      const truth = isHit && !takes ? '' : await forward(call)
      const { id } = call
      texts.push(
        isHit && typeof says === 'object'
          ? JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32000, ...says } })
          : truth,
      )
    }
    if (says === 'nothing') return
    if (says === 'reset') response.socket?.destroy()
    else if (says === '502') end(response, 502, '<html>Bad Gateway</html>')
    else end(response, 200, Array.isArray(body) ? `[${texts.join()}]` : texts[0]!)
  }
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      handle(response, JSON.parse(Buffer.concat(chunks).toString())).catch(() => response.destroy())
    })
  })
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const node: ScriptedNode = {
    url: `http://127.0.0.1:${port}/`,
    manner: plain,
    stop: async () => {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
  return node
}
