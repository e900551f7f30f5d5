/** Values that describe a span. */
export type SpanFields = Readonly<Record<string, string | number | boolean | undefined>>

/** A part of a trace: a piece of work with its beginning and its end. */
export type Span = {
  trace_id: string
  /** The header that continues the trace elsewhere (W3C Trace Context). */
  traceparent: string
  /** Calls a function whose work belongs to this span, also after it has returned. */
  run<result>(work: () => result): result
  /** Ends the span; only the first call counts. */
  end(fields?: SpanFields, error?: unknown): void
}

/** The root span of a block. Every process can compute it, so that a delivery continues the trace of its block. */
export type BlockSpan = { trace_id: string; span_id: string }

/** How a trace begins. */
export type Root = {
  name: string
  fields?: SpanFields
  /** A header of the caller; one that is not well-formed is ignored. */
  traceparent?: string | undefined
  /** The block that the work is for. */
  below?: BlockSpan
  /** The block that the work is the root of. */
  as?: BlockSpan
}

/** Traces of requests and blocks. Parts of the service have one only where telemetry is on. */
export type Tracing = {
  /** Whether the next request is traced. */
  isSampled(): boolean
  /** The span of a block, where that block is traced. */
  blockSpan(network_id: number, block_number: number): BlockSpan | undefined
  /** Begins a trace, or continues one of another process. */
  begin(root: Root): Span
  /** Begins a part of the current trace; undefined where there is none. */
  open(name: string, fields?: SpanFields): Span | undefined
  /** Records a part of the current trace that has just ended. */
  past(name: string, durationMs: number, fields?: SpanFields): void
  /** A callback that runs in the current span, wherever it is called. */
  bind<argument>(callback: (argument: argument) => void): (argument: argument) => void
  /** The id of the current trace. */
  traceId(): string | undefined
}

/** Runs asynchronous work in a span; without a span it just runs. */
export async function inSpan<result>(
  span: Span | undefined,
  work: () => Promise<result>,
): Promise<result> {
  if (!span) return await work()
  try {
    const result = await span.run(work)
    span.end()
    return result
  } catch (error) {
    span.end({}, error)
    throw error
  }
}
