import type { SeverityNumber } from '@opentelemetry/api'
import { loadLogSdk, type Resource, type Waits } from './sdk.ts'

/** Sends lines of the log to a collector. */
export type LineExport = { onLine(line: string): void; stop(): Promise<void> }

// The numbers of OpenTelemetry for the levels of the log.
const severities: Readonly<Record<string, number>> = {
  trace: 1,
  debug: 5,
  info: 9,
  warn: 13,
  error: 17,
  fatal: 21,
}

/** Begins to send. Lines are taken as they were written, so that what the log hides is hidden here too. */
export async function createLineExport(options: {
  url: string
  headers: Record<string, string>
  resource: Resource
  waits: Waits
  version: string
}): Promise<LineExport> {
  const { url, headers, resource, waits, version } = options
  const [{ ROOT_CONTEXT, trace }, sdk] = await Promise.all([
    import('@opentelemetry/api'),
    loadLogSdk(),
  ])
  const timeoutMillis = waits.exportTimeoutMillis
  const exporter = new sdk.OTLPLogExporter({ url, headers, timeoutMillis })
  const provider = new sdk.LoggerProvider({
    resource,
    processors: [new sdk.BatchLogRecordProcessor({ ...waits, exporter })],
  })
  const logger = provider.getLogger('portolan', version)
  return {
    onLine(line) {
      const parsed = parse(line)
      if (!parsed) return
      const { level, time, msg, trace_id, span_id, ...fields } = parsed
      const traceId = String(trace_id ?? '')
      // The span is not known any more: the trace is.
      const spanId = String(span_id ?? '0000000000000001')
      const context = trace_id
        ? trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId, traceFlags: 1 })
        : ROOT_CONTEXT
      logger.emit({
        timestamp: Date.parse(String(time)),
        severityText: String(level),
        severityNumber: (severities[String(level)] ?? 9) as SeverityNumber,
        body: String(msg ?? ''),
        attributes: flat(fields),
        context,
      })
    },
    stop: () => provider.shutdown(),
  }
}

const parse = (line: string): Record<string, unknown> | undefined => {
  try {
    return JSON.parse(line) as Record<string, unknown>
  } catch {
    return undefined
  }
}

/** Nested values as text; an error by the names of OpenTelemetry. */
function flat(fields: Record<string, unknown>): Record<string, string | number | boolean> {
  const all: Record<string, string | number | boolean> = {}
  for (const [name, value] of Object.entries(fields)) {
    if (value === null || value === undefined) continue
    if ((name === 'err' || name === 'error') && typeof value === 'object') {
      const { type, message, stack } = value as Record<string, unknown>
      if (type) all['exception.type'] = String(type)
      if (message) all['exception.message'] = String(message)
      if (stack) all['exception.stacktrace'] = String(stack)
    } else if (typeof value === 'object') all[name] = JSON.stringify(value)
    else all[name] = value as string | number | boolean
  }
  return all
}
