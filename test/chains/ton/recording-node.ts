import { once } from 'node:events'
import { createServer } from 'node:http'

/** A node in front of a node: it notes what is asked, and may change what API v3 answers. */
export type RecordingNode = {
  node_url: string
  /** `v2/method` or `v3/path`, in the order of the calls. */
  asked: string[]
  change: ((path: string, answer: Record<string, unknown>) => unknown) | undefined
  stop(): Promise<void>
}

/** Starts it on the loopback. */
export async function startRecordingNode(node_url: string): Promise<RecordingNode> {
  const server = createServer(async (request, response) => {
    const parts: Buffer[] = []
    for await (const part of request) parts.push(part)
    const body = Buffer.concat(parts).toString()
    const url = new URL(request.url ?? '/', node_url)
    const [, , version, ...rest] = url.pathname.split('/')
    const path = rest.join('/')
    const isV3 = version === 'v3'
    recording.asked.push(isV3 ? `v3/${path}` : `v2/${JSON.parse(body).method}`)
    try {
      const answer = await fetch(url, {
        method: request.method ?? 'GET',
        ...(body !== '' && { body }),
      })
      let text = await answer.text()
      if (isV3 && recording.change) text = JSON.stringify(recording.change(path, JSON.parse(text)))
      response.writeHead(answer.status, { 'content-type': 'application/json' }).end(text)
    } catch {
      response.destroy()
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const port = typeof address === 'object' && address ? address.port : 0
  const recording: RecordingNode = {
    node_url: `http://127.0.0.1:${port}/api/v2`,
    asked: [],
    change: undefined,
    stop: async () => {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
  return recording
}
