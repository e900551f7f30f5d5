import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'

type Answer = { result?: { number?: string; parentHash?: string } | null }

/** A node in front of another one that has all of its blocks except for some. */
export async function startPrunedNode(
  url: string,
  hidden: { from: number; to: number },
): Promise<{ url: string; stop(): void }> {
  const prune = (answer: Answer): Answer => {
    const number = answer.result?.parentHash ? Number(answer.result.number) : -1
    return number >= hidden.from && number <= hidden.to ? { ...answer, result: null } : answer
  }
  const server = createServer(async (request, response) => {
    try {
      const answered = await fetch(url, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(await json(request)),
        signal: AbortSignal.timeout(10_000),
      })
      const body = (await answered.json()) as Answer | Answer[]
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify(Array.isArray(body) ? body.map(prune) : prune(body)))
    } catch {
      response.destroy()
    }
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stop: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}
