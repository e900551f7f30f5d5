import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Anvil } from '../../devnet/anvil/anvil.ts'

/** A way to anvil on which no answer mixes two states of the chain. */
export type OrderlyNode = {
  url: string
  /** Makes or drops blocks while nothing is being asked. */
  alone<result>(work: () => Promise<result>): Promise<result>
  stop(): Promise<void>
}

/**
 * Anvil takes a question about its newest block, waits until the next one is made, and answers out of
 * the state after that; while it rolls back, the common block has the state of the branch that it
 * leaves. Nodes that keep their states by their roots do neither, and with a fork before the tracker
 * has seen the dropped block nothing on the chain would explain the balance. So nobody asks meanwhile.
 */
export async function startOrderlyNode(anvil: Anvil): Promise<OrderlyNode> {
  let asking = 0
  let asked = Promise.withResolvers<void>()
  let open = Promise.withResolvers<void>()
  open.resolve()
  const server = createServer(async (incoming, response) => {
    try {
      const chunks: Buffer[] = []
      for await (const chunk of incoming) chunks.push(chunk)
      for (let gate: unknown; gate !== open; ) {
        gate = open
        await open.promise
      }
      asking++
      try {
        const answer = await fetch(anvil.url, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: Buffer.concat(chunks),
        })
        const body = Buffer.from(await answer.arrayBuffer())
        response.writeHead(answer.status, { 'content-type': 'application/json' }).end(body)
      } finally {
        if (--asking === 0) asked.resolve()
      }
    } catch {
      response.destroy()
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
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
