import { once } from 'node:events'
import { WebSocket } from 'ws'
import { headersOf } from '../../chains/nodes/node-name.ts'

/** The families of chains, as the configuration names them. */
export type NodeKind = 'evm' | 'ton' | 'sui' | 'polkadot'

/** How a node is reached. */
export type NodeAddress = {
  kind: NodeKind
  url: string
  headers?: Record<string, string>
  transport?: 'grpc' | 'grpc-web'
  /** Of a lite server of TON, in base64. */
  key?: string
}

/** Calls of JSON-RPC to one node, over HTTP or one WebSocket. */
export type Rpc = AsyncDisposable & { call(method: string, params: unknown[]): Promise<unknown> }

/** Opens the way to a node. */
export async function openRpc(address: NodeAddress, signal: AbortSignal): Promise<Rpc> {
  const url = new URL(address.url)
  // Neither fetch nor logs of proxies should see them in the address.
  const headers = headersOf(url, address.headers ?? {})
  url.username = ''
  url.password = ''
  if (/^http/.test(url.protocol))
    return {
      call: async (method, params) =>
        resultOf(await post(url, headers, text(method, params), signal)),
      [Symbol.asyncDispose]: async () => {},
    }
  const socket = new WebSocket(url, { headers })
  // Later answers have no waiting caller.
  socket.on('error', () => {})
  const close = async () => socket.terminate()
  try {
    await once(socket, 'open', { signal })
  } catch (error) {
    await close()
    throw error
  }
  return {
    call: async (method, params) => {
      socket.send(text(method, params))
      const [data] = await once(socket, 'message', { signal })
      return resultOf(String(data))
    },
    [Symbol.asyncDispose]: close,
  }
}

const text = (method: string, params: unknown[]): string =>
  JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })

async function post(
  url: URL,
  headers: Record<string, string>,
  body: string,
  signal: AbortSignal,
): Promise<string> {
  const answer = await fetch(url, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body,
    signal,
    redirect: 'manual',
  })
  if (answer.ok) return await answer.text()
  await answer.body?.cancel()
  throw new Error(`it answers with status ${answer.status}`)
}

function resultOf(answer: string): unknown {
  let parsed: { result?: unknown; error?: { message?: string } }
  try {
    parsed = JSON.parse(answer)
  } catch {
    throw new Error('it does not speak JSON-RPC')
  }
  if (parsed.error) throw new Error(parsed.error.message ?? 'it refuses')
  return parsed.result
}
