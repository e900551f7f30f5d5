import type { LoggerProvider, TracerProvider } from '@opentelemetry/api'

/** Ids of new traces and spans. */
export type IdGenerator = { generateTraceId(): string; generateSpanId(): string }

/** How long spans and lines wait, and how many. */
export type Waits = {
  maxQueueSize: number
  scheduledDelayMillis: number
  exportTimeoutMillis: number
}

/** Where an exporter sends to. */
export type Collector = { url: string; headers: Record<string, string>; timeoutMillis: number }

type Made<options, made> = new (options: options) => made
type Stoppable = { shutdown(): Promise<void> }
type Exporter = { readonly [exporter]: never }
type Processor = { readonly [processor]: never }
declare const exporter: unique symbol
declare const processor: unique symbol
declare const resource: unique symbol

/** What spans and lines say of the process. */
export type Resource = { readonly [resource]: never }

/** The parts of the SDK for traces. */
export type TraceSdk = {
  TracerProvider: Made<
    {
      resource: Resource
      idGenerator: IdGenerator
      sampler: object
      spanProcessors: readonly Processor[]
    },
    TracerProvider & Stoppable
  >
  AlwaysOnSampler: new () => object
  RandomIdGenerator: new () => IdGenerator
  BatchSpanProcessor: Made<Waits & { exporter: Exporter }, Processor>
  OTLPTraceExporter: Made<Collector, Exporter>
  resourceFromAttributes(attributes: Record<string, string>): Resource
}

/** The parts of the SDK for logs. */
export type LogSdk = {
  LoggerProvider: Made<
    { resource: Resource; processors: readonly Processor[] },
    LoggerProvider & Stoppable
  >
  BatchLogRecordProcessor: Made<Waits & { exporter: Exporter }, Processor>
  OTLPLogExporter: Made<Collector, Exporter>
}

// By name: an installation that left the packages out starts all the same, and its types can be checked.
const load = async (names: readonly string[]): Promise<object> => {
  const parts = await Promise.all(
    names.map(async (name) => {
      try {
        return (await import(`@opentelemetry/${name}`)) as object
      } catch (cause) {
        throw new Error(
          `telemetry.otlp_url is set, but the package @opentelemetry/${name} is not installed`,
          { cause },
        )
      }
    }),
  )
  return Object.assign({}, ...parts) as object
}

/** Loads what traces need. */
export const loadTraceSdk = async (): Promise<TraceSdk> =>
  (await load(['sdk-trace', 'exporter-trace-otlp-http', 'resources'])) as TraceSdk

/** Loads what logs need. */
export const loadLogSdk = async (): Promise<LogSdk> =>
  (await load(['sdk-logs', 'exporter-logs-otlp-http'])) as LogSdk
