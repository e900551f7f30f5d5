import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll } from 'vitest'

type Value = { stringValue?: string; intValue?: number | string; boolValue?: boolean }
type Attribute = { key: string; value: Value }

/** A span as it was sent. */
export type SentSpan = {
  traceId: string
  spanId: string
  parentSpanId?: string
  name: string
  status: { code?: number }
  fields: Record<string, string | number | boolean>
}

/** A line of the log as it was sent. */
export type SentLine = {
  traceId?: string
  severityText: string
  body: { stringValue: string }
  fields: Record<string, string | number | boolean>
}

/** A collector in this process that takes OTLP over HTTP in JSON. */
export type OtlpReceiver = {
  url: string
  spans: SentSpan[]
  lines: SentLine[]
  /** The headers of the last request. */
  headers(): IncomingHttpHeaders
}

const fieldsOf = (attributes: readonly Attribute[] = []) =>
  Object.fromEntries(
    attributes.map(({ key, value }) => [key, Object.values(value)[0] as string | number | boolean]),
  )

/** Starts a collector; stopped after the file. */
export const startOtlpReceiver = async (): Promise<OtlpReceiver> => {
  const spans: SentSpan[] = []
  const lines: SentLine[] = []
  let headers: IncomingHttpHeaders = {}
  const server = createServer((request, response) => {
    headers = request.headers
    const chunks: Buffer[] = []
    request.on('data', (chunk) => chunks.push(chunk))
    request.on('end', () => {
      const sent = JSON.parse(Buffer.concat(chunks).toString('utf8'))
      for (const { scopeSpans } of sent.resourceSpans ?? [])
        for (const scope of scopeSpans)
          for (const span of scope.spans) spans.push({ ...span, fields: fieldsOf(span.attributes) })
      for (const { scopeLogs } of sent.resourceLogs ?? [])
        for (const scope of scopeLogs)
          for (const line of scope.logRecords)
            lines.push({ ...line, fields: fieldsOf(line.attributes) })
      response.writeHead(200, { 'content-type': 'application/json' }).end('{}')
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  afterAll(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}/`, spans, lines, headers: () => headers }
}
