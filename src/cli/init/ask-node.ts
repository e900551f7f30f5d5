import { once } from 'node:events'
import { WebSocket } from 'ws'
import type { CheckedNode, InitTag } from './answers.ts'
import { chainKinds } from './answers.ts'

const patienceMs = 10_000

/** Asks a node which chain it is on. A node that is away is written down all the same. */
export async function askNode(tag: InitTag, url: string): Promise<CheckedNode> {
  try {
    const chain_id = await asks[chainKinds[tag].kind](url)
    return { url, ...(chain_id !== undefined && { chain_id }) }
  } catch (error) {
    return { url, problem: reasonOf(error) }
  }
}

type Ask = (url: string) => Promise<number | string | undefined>

const asks: Readonly<Record<(typeof chainKinds)[InitTag]['kind'], Ask>> = {
  evm: async (url) => {
    const id = await rpc(url, 'eth_chainId', [])
    if (typeof id !== 'string' || !/^0x[0-9a-f]+$/i.test(id)) throw new Error('it is no EVM node')
    return Number(id)
  },
  // The API does not tell the global id; that it serves the masterchain is what can be checked.
  ton: async (url) => {
    const answer = await fetch(`${url.replace(/\/+$/, '')}/getMasterchainInfo`, {
      signal: AbortSignal.timeout(patienceMs),
    })
    const { ok } = (await answer.json()) as { ok?: boolean }
    if (ok !== true) throw new Error(`it answers with ${answer.status}`)
    return undefined
  },
  sui: async (url) => {
    const { askSui } = await import('./ask-sui.ts')
    return await askSui(url, patienceMs)
  },
  polkadot: async (url) => {
    const genesis = await rpc(url, 'chain_getBlockHash', [0])
    if (typeof genesis !== 'string') throw new Error('it is no Polkadot node')
    return genesis
  },
}

async function rpc(url: string, method: string, params: unknown[]): Promise<unknown> {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
  const text = /^http/.test(url) ? await post(url, body) : await exchange(url, body)
  const answer = JSON.parse(text) as { result?: unknown; error?: { message?: string } }
  if (answer.error) throw new Error(answer.error.message ?? 'it refuses')
  return answer.result
}

async function post(url: string, body: string): Promise<string> {
  const answer = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body,
    signal: AbortSignal.timeout(patienceMs),
  })
  if (!answer.ok) throw new Error(`it answers with ${answer.status}`)
  return await answer.text()
}

async function exchange(url: string, body: string): Promise<string> {
  const socket = new WebSocket(url, { handshakeTimeout: patienceMs })
  try {
    const signal = AbortSignal.timeout(patienceMs)
    await once(socket, 'open', { signal })
    socket.send(body)
    const [data] = await once(socket, 'message', { signal })
    return String(data)
  } finally {
    socket.terminate()
  }
}

function reasonOf(error: unknown): string {
  const { name, message, code, cause } = error as Error & { code?: string }
  if (name === 'TimeoutError' || name === 'AbortError') return 'no answer within 10 s'
  return cause instanceof Error ? reasonOf(cause) : message || String(code)
}
