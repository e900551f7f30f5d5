import type { Installation } from '../domain/context.ts'
import type { EndpointRules } from '../lib/net/endpoint.ts'
import { createReachable } from '../lib/net/reachable.ts'
import type { Tracing } from '../lib/tracing.ts'
import { startHistoryRetention } from '../workers/janitor/history-retention.ts'
import { startSinks } from '../workers/sinks/sinks.ts'
import { type Courier, startCourier } from '../workers/webhooks/courier.ts'
import { createGuardedFetch } from '../workers/webhooks/guarded-fetch.ts'
import type { Config } from './config/schema.ts'
import { follow } from './follow.ts'

const loopback = ['127.0.0.0/8', '::1']

/** What addresses that users give may lead to; under the development rules also to this machine. */
export function endpointRules(
  current: () => Pick<Config, 'webhooks'>,
  developmentRules: boolean,
): EndpointRules {
  // Read with each request, because a reload changes the networks that may be reached.
  const reachable = follow(
    () => current().webhooks.allowed_networks,
    (networks) => createReachable(networks ?? (developmentRules ? loopback : [])),
  )
  return {
    get allowHttp() {
      return current().webhooks.allow_http ?? developmentRules
    },
    reachable: {
      allows: (address) => reachable().allows(address),
      get hasPrivate() {
        return reachable().hasPrivate
      },
    },
  }
}

type WebhookTools = Installation & { endpoints: EndpointRules; tracing?: Tracing | undefined }

/** The deliveries of notifications, whose settings can be replaced. */
export type Webhooks = Courier & {
  /** Delivers with the settings that are current now. Deliveries that are under way end with those before. */
  replace(): Promise<void>
}

/** Opens the deliveries of notifications. */
export function openWebhooks(current: () => Config, installation: WebhookTools): Webhooks {
  let courier = openCourier(current(), installation)
  return {
    wake: () => courier.wake(),
    status: () => courier.status(),
    timings: () => courier.timings(),
    replace: async () => {
      const before = courier
      // Any number of couriers may run: nothing waits for the end of the one before.
      courier = openCourier(current(), installation)
      await before.stop()
    },
    stop: () => courier.stop(),
  }
}

function openCourier(config: Config, { endpoints, ...installation }: WebhookTools): Courier {
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
  const sinks = startSinks({ ...installation, endpoints })
  const { db, clock, log } = installation
  const keepMs = history_retention_days * 86_400_000
  const retention = startHistoryRetention({ db, clock, log, keepMs })
  // Couriers and sinks share one wake-up: both send notifications that were just written.
  return {
    ...courier,
    wake: () => {
      courier.wake()
      sinks.wake()
    },
    stop: async () => {
      // The client last: what is under way still needs it.
      await Promise.all([retention.stop(), courier.stop(), sinks.stop()])
      await http.stop()
    },
  }
}
