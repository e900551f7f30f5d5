import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { request } from 'undici'
import { afterAll, onTestFinished, TestRunner } from 'vitest'

type Call = { id: number; method: string; params: unknown[] }

/** A node behind a door that keeps some methods from it and notes what goes through. */
export type MethodProxy = {
  url: string
  /** Where calls go; may be changed. */
  target: string
  /** These answer -32601. */
  denied: Set<string>
  /** The methods of every exchange. */
  exchanges: string[][]
  /** Changes the result of a method on its way back. */
  alter?: (call: Call, result: unknown) => unknown
}

/** Starts the door; it ends with the test or the file. */
export async function startMethodProxy(
  target: string,
  denied: readonly string[] = [],
): Promise<MethodProxy> {
  const forward = async (text: string): Promise<string> => {
    const body: Call | Call[] = JSON.parse(text)
    const calls = Array.isArray(body) ? body : [body]
    proxy.exchanges.push(calls.map(({ method }) => method))
    const answers = await Promise.all(
      calls.map(async (call) => {
        if (proxy.denied.has(call.method))
          return { jsonrpc: '2.0', id: call.id, error: { code: -32601, message: 'not here' } }
        const { body: answer } = await request(proxy.target, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify(call),
        })
        const reply = (await answer.json()) as { result?: unknown }
        if (proxy.alter && reply.result !== undefined)
          reply.result = proxy.alter(call, reply.result)
        return reply
      }),
    )
    return JSON.stringify(Array.isArray(body) ? answers : answers[0])
  }
  const server = createServer(async (incoming, outgoing) => {
    const chunks: Buffer[] = []
    for await (const chunk of incoming) chunks.push(chunk)
    try {
      const text = await forward(Buffer.concat(chunks).toString())
      outgoing.writeHead(200, { 'content-type': 'application/json' }).end(text)
    } catch {
      outgoing.destroy()
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const stop = async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
  if (TestRunner.getCurrentTest()) onTestFinished(stop)
  else afterAll(stop)
  const proxy: MethodProxy = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    target,
    denied: new Set(denied),
    exchanges: [],
  }
  return proxy
}
