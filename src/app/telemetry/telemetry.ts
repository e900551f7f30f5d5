// Traces and logs by OTLP over HTTP, with the SDK of OpenTelemetry. The SDK is imported only where `telemetry.otlp_url` is
// set. Nothing is registered globally: two services in one process do not mix. Spans and lines wait in bounded queues
// and are dropped when the collector does not take them.

import { AsyncLocalStorage } from 'node:async_hooks'
import { createHash } from 'node:crypto'
import { hostname } from 'node:os'
import type { Span as SdkSpan, SpanContext } from '@opentelemetry/api'
import type { BlockSpan, Root, Span, SpanFields, Tracing } from '../../lib/tracing.ts'
import { createLineExport } from './line-export.ts'
import { type IdGenerator, loadTraceSdk } from './sdk.ts'

/** How telemetry is sent. */
export type TelemetryOptions = {
  /** The base address of the collector, such as `http://127.0.0.1:4318`. */
  url: string
  headers: Record<string, string>
  serviceName: string
  version: string
  /** Share of requests and blocks that are traced, from 0 to 1. */
  traceShare: number
  /** Whether lines of the log are sent too. */
  isLogSent: boolean
  /** The longest time that spans and lines wait to be sent. */
  delayMs?: number
  random?: () => number
}

/** The running telemetry. */
export type Telemetry = {
  tracing: Tracing
  /** Takes a line of the log, where lines are sent. */
  onLine: ((line: string) => void) | undefined
  stop(): Promise<void>
}

const exportTimeoutMs = 5_000
const stopTimeoutMs = 2_000
const usualDelayMs = 2_000
const maxQueueSize = 4_096
const sampledFlag = 1
const traceparentForm = /^00-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}$/
// Ids of zeros are not valid (W3C Trace Context).
const noId = /^0+$/

/** Loads the SDK and begins to send. */
export async function openTelemetry(options: TelemetryOptions): Promise<Telemetry> {
  const { url, headers, serviceName, version, traceShare, delayMs = usualDelayMs } = options
  const { random = Math.random } = options
  const [api, sdk] = await Promise.all([import('@opentelemetry/api'), loadTraceSdk()])
  const resource = sdk.resourceFromAttributes({
    'service.name': serviceName,
    'service.version': version,
    'service.instance.id': `${hostname()}:${process.pid}`,
  })
  const base = url.endsWith('/') ? url.slice(0, -1) : url
  const waits = {
    maxQueueSize,
    scheduledDelayMillis: delayMs,
    exportTimeoutMillis: exportTimeoutMs,
  }
  const ids = createIds(new sdk.RandomIdGenerator())
  const provider = new sdk.TracerProvider({
    resource,
    idGenerator: ids,
    // This module decides what is traced, before the SDK does any work.
    sampler: new sdk.AlwaysOnSampler(),
    spanProcessors: [
      new sdk.BatchSpanProcessor({
        ...waits,
        exporter: new sdk.OTLPTraceExporter({
          url: `${base}/v1/traces`,
          headers,
          timeoutMillis: exportTimeoutMs,
        }),
      }),
    ],
  })
  const tracer = provider.getTracer('portolan', version)
  const storage = new AsyncLocalStorage<SdkSpan>()
  const { ROOT_CONTEXT, SpanStatusCode, trace } = api

  const wrap = (own: SdkSpan): Span => {
    const { traceId, spanId } = own.spanContext()
    let isEnded = false
    return {
      trace_id: traceId,
      traceparent: `00-${traceId}-${spanId}-01`,
      run: (work) => storage.run(own, work),
      end(fields, error) {
        if (isEnded) return
        isEnded = true
        if (fields) own.setAttributes(defined(fields))
        if (error !== undefined) own.setStatus({ code: SpanStatusCode.ERROR, ...messageOf(error) })
        own.end()
      },
    }
  }
  const parentOf = ({ below, traceparent }: Root): SpanContext | undefined => {
    if (below) return remote(below.trace_id, below.span_id)
    const [, trace_id = '', span_id = ''] = traceparentForm.exec(traceparent ?? '') ?? []
    return trace_id === '' || noId.test(trace_id) || noId.test(span_id)
      ? undefined
      : remote(trace_id, span_id)
  }

  const tracing: Tracing = {
    isSampled: () => traceShare > 0 && random() < traceShare,
    blockSpan: (network_id, block_number) =>
      blockSpanOf(`${serviceName}/${network_id}/${block_number}`, traceShare),
    begin(root) {
      const parent = parentOf(root)
      const context = parent ? trace.setSpanContext(ROOT_CONTEXT, parent) : ROOT_CONTEXT
      const attributes = defined(root.fields ?? {})
      // For this synchronous call only, so that no other span takes the ids.
      ids.use(root.as)
      const own = tracer.startSpan(root.name, { attributes }, context)
      ids.use(undefined)
      return wrap(own)
    },
    open(name, fields = {}) {
      const parent = storage.getStore()
      if (!parent) return undefined
      const context = trace.setSpan(ROOT_CONTEXT, parent)
      return wrap(tracer.startSpan(name, { attributes: defined(fields) }, context))
    },
    past(name, durationMs, fields = {}) {
      const parent = storage.getStore()
      if (!parent) return
      const end = Date.now()
      const times = { startTime: end - durationMs, attributes: defined(fields) }
      tracer.startSpan(name, times, trace.setSpan(ROOT_CONTEXT, parent)).end(end)
    },
    bind(callback) {
      const own = storage.getStore()
      return own ? (argument) => storage.run(own, callback, argument) : callback
    },
    traceId: () => storage.getStore()?.spanContext().traceId,
  }
  const lines = options.isLogSent
    ? await createLineExport({ url: `${base}/v1/logs`, headers, resource, waits, version })
    : undefined
  return {
    tracing,
    onLine: lines?.onLine,
    stop: async () => {
      // What the collector does not take now is lost; the stop does not wait for it.
      const timer = Promise.withResolvers<void>()
      const timeout = setTimeout(timer.resolve, stopTimeoutMs)
      const stopped = Promise.allSettled([provider.shutdown(), lines?.stop()])
      await Promise.race([stopped, timer.promise])
      clearTimeout(timeout)
    },
  }
}

const remote = (traceId: string, spanId: string): SpanContext => ({
  ...{ traceId, spanId, traceFlags: sampledFlag, isRemote: true },
})

/** The ids of a block's span, from its name: the same in every process. Bytes that are in neither id decide whether it is traced. */
function blockSpanOf(name: string, share: number): BlockSpan | undefined {
  if (!(share > 0)) return undefined
  const hash = createHash('sha256').update(name).digest()
  if (hash.readUInt32BE(24) / 0x1_0000_0000 >= share) return undefined
  return { trace_id: hash.toString('hex', 0, 16), span_id: hash.toString('hex', 16, 24) }
}

/** Random ids, except while others are given. */
function createIds(random: IdGenerator): IdGenerator & { use(ids: BlockSpan | undefined): void } {
  let given: BlockSpan | undefined
  return {
    use(ids) {
      given = ids
    },
    generateTraceId: () => given?.trace_id ?? random.generateTraceId(),
    generateSpanId: () => given?.span_id ?? random.generateSpanId(),
  }
}

const defined = (fields: SpanFields): Record<string, string | number | boolean> =>
  Object.fromEntries(
    Object.entries(fields).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  )

const messageOf = (error: unknown) => (error instanceof Error ? { message: error.message } : {})
