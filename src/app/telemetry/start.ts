// Telemetry: traces and logs by OTLP over HTTP, off by default. It may use `lib` and wraps networks of the gateway; the SDK of
// OpenTelemetry is loaded only where `telemetry.otlp_url` is set. It guarantees that a collector that is slow or
// unreachable delays nothing.

import type { Tracing } from '../../lib/tracing.ts'
import type { Env } from '../config/problem.ts'
import type { Config } from '../config/schema.ts'
import { resolveSecret } from '../config/secrets.ts'
import type { Own } from '../lifetime.ts'
import type { LogHooks } from '../logger.ts'

/** Starts telemetry where it is configured; otherwise the SDK is not even loaded. */
export async function startTelemetry(
  { telemetry }: Config,
  options: { env: Env; version: string; attachLog?(hooks: LogHooks): void },
  own: Own,
): Promise<Tracing | undefined> {
  const { otlp_url, service_name, trace_share, logs } = telemetry
  if (otlp_url === undefined) return undefined
  const { env, version, attachLog } = options
  const { openTelemetry } = await import('./telemetry.ts')
  const headers = Object.fromEntries(
    Object.entries(telemetry.headers).map(([name, value]) => [
      name,
      resolveSecret(value, { env, key: 'telemetry.headers' }),
    ]),
  )
  const opened = own(
    await openTelemetry({
      url: resolveSecret(otlp_url, { env, key: 'telemetry.otlp_url' }),
      ...{ headers, version, serviceName: service_name, traceShare: trace_share, isLogSent: logs },
    }),
  )
  const { tracing, onLine } = opened
  attachLog?.({
    context: () => {
      const trace_id = tracing.traceId()
      return trace_id === undefined ? {} : { trace_id }
    },
    onLine,
  })
  return tracing
}
