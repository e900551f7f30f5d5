// The Prometheus metrics. They read the counters of other parts on each scrape and change nothing.
// Metric names are public and do not change.

import type { Pool } from 'pg'
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import type { Failure } from '../../domain/access/failure-budget.ts'
import type { LimiterStatus } from '../../domain/limits/limiter.ts'
import type { Network } from '../../gateway/network.ts'
import type { Streams } from '../../gateway/streams/feed-streams.ts'
import type { Shares } from '../../http/clients/shares.ts'
import type { Finished } from '../../http/exchange.ts'
import type { Routes } from '../../http/routes.ts'
import type { Sockets } from '../../http/websocket/websocket.ts'
import type { PendingStatus } from '../../workers/pending/pending.ts'
import type { CourierStatus } from '../../workers/webhooks/courier.ts'
import type { ReloadOutcome } from '../reload/reload.ts'
import { registerGatewayMetrics } from './gateway.ts'
import { registerPendingMetrics } from './pending.ts'
import { registerShareMetrics } from './shares.ts'
import { registerStreamMetrics } from './streams.ts'
import { registerTrackerMetrics, type TrackersStatus } from './tracker.ts'
import { type NetworkNodes, registerUpstreamMetrics } from './upstreams.ts'
import { registerWebhookMetrics } from './webhooks.ts'

/** What the service counts, in Prometheus' form. */
export type Metrics = {
  finished(exchange: Omit<Finished, 'request_id' | 'client'>): void
  authenticationFailed(failure: Failure): void
  watchShares(shares: Record<'connections' | 'proxied' | 'bodies', Shares>): void
  watchPool(pool: Pool): void
  watchLimiter(status: () => LimiterStatus): void
  watchNetworks(networks: () => Iterable<Network>): void
  /** The nodes of every network, read when metrics are collected. */
  watchUpstreams(read: () => Iterable<NetworkNodes>): void
  watchStreams(streams: ReadonlyMap<string, Streams>, sockets: Sockets): void
  watchCourier(status: () => CourierStatus): void
  watchTrackers(status: TrackersStatus): void
  watchPending(status: () => Record<string, Record<string, PendingStatus>>): void
  /** Counts reloads of the configuration by their outcome. */
  reloaded(outcome: ReloadOutcome['outcome']): void
  text(): Promise<{ contentType: string; text: string }>
}

/** Makes a registry of its own, so that two services in one process do not mix. */
export function createMetrics(version: string, routes: Pick<Routes, 'find'>): Metrics {
  const registry = new Registry()
  const registers = [registry]
  collectDefaultMetrics({ register: registry })
  new Gauge({
    name: 'portolan_info',
    help: 'Version of the service.',
    labelNames: ['version'],
    registers,
  }).set({ version }, 1)
  const requests = new Counter({
    name: 'portolan_http_requests_total',
    help: 'HTTP requests by route, operation and status.',
    labelNames: ['route', 'service', 'operation', 'status'],
    registers,
  })
  const seconds = new Histogram({
    name: 'portolan_http_request_seconds',
    help: 'Time to answer an HTTP request.',
    labelNames: ['route', 'service'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers,
  })
  const failures = new Counter({
    name: 'portolan_authentication_failures_total',
    help: 'Wrong credentials by kind of call; `limited` ones were beyond the budget of their address.',
    labelNames: ['kind', 'outcome'],
    registers,
  })
  const reloads = new Counter({
    name: 'portolan_config_reloads_total',
    help: 'Reloads of the configuration by outcome.',
    labelNames: ['outcome'],
    registers,
  })
  const lastReload = new Gauge({
    name: 'portolan_config_last_reload_successful',
    help: '1 when the last reload of the configuration changed what it should, 0 when it was refused.',
    registers,
  })
  lastReload.set(1)
  return {
    reloaded(outcome) {
      reloads.inc({ outcome })
      lastReload.set(outcome === 'refused' ? 0 : 1)
    },
    authenticationFailed: ({ kind, isLimited }) =>
      failures.inc({ kind, outcome: isLimited ? 'limited' : 'refused' }),
    finished({ route, path, status, seconds: duration }) {
      // Only names of the configuration and the catalogue become labels: a caller cannot make new series.
      const called = route === 'operations' ? routes.find(path) : undefined
      const labels = { route, service: called?.chain ?? '' }
      requests.inc({ ...labels, operation: called?.entry.name ?? '', status })
      // A stream lasts as long as its client stays.
      if (route !== 'events') seconds.observe(labels, duration)
    },
    watchShares(shares) {
      registerShareMetrics(registry, shares)
    },
    watchPool(pool) {
      new Gauge({
        name: 'portolan_database_connections',
        help: 'Connections of the pool by state, and requests that wait for one.',
        labelNames: ['state'],
        registers,
        collect() {
          this.set({ state: 'idle' }, pool.idleCount)
          this.set({ state: 'busy' }, pool.totalCount - pool.idleCount)
          this.set({ state: 'waiting' }, pool.waitingCount)
        },
      })
    },
    watchLimiter(status) {
      new Gauge({
        name: 'portolan_limiter_entries',
        help: 'Pairs of organization and chain whose windows are in memory.',
        registers,
        collect() {
          this.set(status().entries)
        },
      })
      new Gauge({
        name: 'portolan_limiter_shared',
        help: '1 while Redis shares the limits, 0 while this process counts alone.',
        registers,
        collect() {
          this.set(status().mode === 'redis' ? 1 : 0)
        },
      })
    },
    watchNetworks(networks) {
      registerGatewayMetrics(registry, networks)
    },
    watchUpstreams(read) {
      registerUpstreamMetrics(registry, read)
    },
    watchStreams(streams, sockets) {
      registerStreamMetrics(registry, streams, sockets)
    },
    watchCourier(status) {
      registerWebhookMetrics(registry, status)
    },
    watchTrackers(status) {
      registerTrackerMetrics(registry, status)
    },
    watchPending(status) {
      registerPendingMetrics(registry, status)
    },
    text: async () => ({ contentType: registry.contentType, text: await registry.metrics() }),
  }
}
