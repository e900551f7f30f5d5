import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { Anvil } from '../../devnet/anvil/anvil.ts'
import { errorOf, type NodeFault, type RpcCall } from './node-faults.ts'

/** A way to anvil on which no answer mixes two states of the chain. */
export type OrderlyNode = {
  /** A node that traces. */
  url: string
  /** One that does not, and has the same blocks. */
  plainUrl: string
  /** Makes or drops blocks while nothing is being asked. */
  alone<result>(work: () => Promise<result>): Promise<result>
  /** What goes wrong from now on. */
  fail(fault: NodeFault | undefined): void
  /** How many blocks behind the newest one still have their state. */
  keepStates(depth: number): void
  stop(): Promise<void>
}

type Reply = { id: unknown }

// So long a node is unreachable while it restarts: clients notice, and ask what it can do when it is back.
const restartMs = 1_500

/**
 * Anvil takes a question about its newest block, waits until the next one is made, and answers out of
 * the state after that; while it rolls back, the common block has the state of the branch that it
 * leaves. Nodes that keep their states by their roots do neither, and with a fork before the tracker
 * has seen the dropped block nothing on the chain would explain the balance. So nothing is read meanwhile.
 */
export async function startOrderlyNode(anvil: Anvil): Promise<OrderlyNode> {
  let asking = 0
  let asked = Promise.withResolvers<void>()
  let open = Promise.withResolvers<void>()
  open.resolve()
  let fault: NodeFault | undefined
  let isRestarting = false
  let depth = Number.POSITIVE_INFINITY
  const numbers = new Map<string, number>()

  const ask = async (body: unknown): Promise<string> => {
    const answer = await fetch(anvil.url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    return await answer.text()
  }
  const head = async (): Promise<number> => Number(await anvil.call<string>('eth_blockNumber'))
  const numberOf = async (hash: string): Promise<number | undefined> => {
    const known = numbers.get(hash)
    if (known !== undefined) return known
    const block = await anvil.call<{ number: string } | null>('eth_getBlockByHash', [hash, false])
    if (block) numbers.set(hash, Number(block.number))
    return block ? Number(block.number) : undefined
  }
  const setup = { head, numberOf, depth: () => depth }

  const answer = async (response: ServerResponse, body: string, isPlain: boolean) => {
    const parsed = JSON.parse(body) as RpcCall | RpcCall[]
    const calls = Array.isArray(parsed) ? parsed : [parsed]
    const errors = await Promise.all(calls.map((call) => errorOf(setup, call, { fault, isPlain })))
    const head = { 'content-type': 'application/json' }
    if (errors.every((error) => error === undefined)) {
      const reply = await fetch(anvil.url, { method: 'POST', headers: head, body })
      response.writeHead(reply.status, head).end(Buffer.from(await reply.arrayBuffer()))
      return
    }
    const good = calls.filter((_, at) => !errors[at])
    const replies: Reply[] = good.length > 0 ? JSON.parse(await ask(good)) : []
    for (const [at, error] of errors.entries())
      if (error) replies.push({ jsonrpc: '2.0', id: calls[at]!.id, error } as Reply)
    response.writeHead(200, head)
    response.end(JSON.stringify(Array.isArray(parsed) ? replies : replies[0]))
  }

  const server = createServer(async (incoming, response) => {
    try {
      const isPlain = incoming.url === '/plain'
      const chunks: Buffer[] = []
      for await (const chunk of incoming) chunks.push(chunk)
      for (let gate: unknown; gate !== open; ) {
        gate = open
        await open.promise
      }
      if (!isPlain && (fault === 'tracer unreachable' || isRestarting)) return response.destroy()
      if (fault === 'all unreachable') return response.destroy()
      asking++
      try {
        await answer(response, Buffer.concat(chunks).toString(), isPlain)
      } finally {
        if (--asking === 0) asked.resolve()
      }
    } catch {
      response.destroy()
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const restart = async (): Promise<void> => {
    isRestarting = true
    await delay(restartMs)
    isRestarting = false
  }
  return {
    url,
    plainUrl: `${url}/plain`,
    fail: (next) => {
      // A node gets or loses its debug API when it is started.
      if (next === 'no debug API' || fault === 'no debug API') void restart()
      fault = next
    },
    keepStates: (count) => {
      depth = count
    },
    alone: async (work) => {
      open = Promise.withResolvers()
      while (asking > 0) {
        asked = Promise.withResolvers()
        await asked.promise
      }
      try {
        return await work()
      } finally {
        open.resolve()
      }
    },
    stop: async () => {
      server.closeAllConnections()
      server.close()
    },
  }
}
