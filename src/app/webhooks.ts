import type { Installation } from '../domain/context.ts'
import type { EndpointRules } from '../lib/net/endpoint.ts'
import { createReachable } from '../lib/net/reachable.ts'
import { startHistoryRetention } from '../workers/janitor/history-retention.ts'
import { type Courier, startCourier } from '../workers/webhooks/courier.ts'
import { createGuardedFetch } from '../workers/webhooks/guarded-fetch.ts'
import type { Config } from './config/schema.ts'

const loopback = ['127.0.0.0/8', '::1']

/** What addresses that users give may lead to; under the development rules also to this machine. */
export function endpointRules(config: Config, developmentRules: boolean): EndpointRules {
  const { allow_http, allowed_networks } = config.webhooks
  return {
    allowHttp: allow_http ?? developmentRules,
    reachable: createReachable(allowed_networks ?? (developmentRules ? loopback : [])),
  }
}

/** Opens the deliveries of notifications. */
export function openWebhooks(
  config: Config,
  { endpoints, ...installation }: Installation & { endpoints: EndpointRules },
): Courier {
  const { timeout_seconds, concurrency, in_flight_limit, history_retention_days } = config.webhooks
  const timeoutMs = timeout_seconds * 1000
  const http = createGuardedFetch({
    ...endpoints,
    connectTimeoutMs: Math.min(timeoutMs, 10_000),
  })
  const courier = startCourier({
    ...installation,
    http,
    timeoutMs,
    limits: { perReceiver: concurrency, total: in_flight_limit },
    stopTimeoutMs: Math.min(timeoutMs, config.server.shutdown_timeout_seconds * 1000),
  })
  const { db, clock, log } = installation
  const keepMs = history_retention_days * 86_400_000
  const retention = startHistoryRetention({ db, clock, log, keepMs })
  return {
    ...courier,
    stop: async () => {
      await retention.stop()
      await courier.stop()
      await http.stop()
    },
  }
}
