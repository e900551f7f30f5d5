// The Prometheus metrics. They read the counters of other parts on each scrape and change nothing.
// Metric names are public and do not change.

import type { Pool } from 'pg'
import { Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client'
import type { Failure } from '../../domain/access/failure-budget.ts'
import type { NetworkNodes } from '../../domain/context.ts'
import type { LimiterStatus } from '../../domain/limits/limiter.ts'
import type { Network } from '../../gateway/network.ts'
import type { Streams } from '../../gateway/streams/feed-streams.ts'
import type { Shares } from '../../http/clients/shares.ts'
import type { Finished } from '../../http/exchange.ts'
import type { Routes } from '../../http/routes.ts'
import type { Sockets } from '../../http/websocket/websocket.ts'
import { callBounds, createHistogram, type Histogram } from '../../lib/histogram.ts'
import type { PendingStatus } from '../../workers/pending/pending.ts'
import type { Courier } from '../../workers/webhooks/courier.ts'
import type { ReloadOutcome } from '../reload/reload.ts'
import { registerGatewayMetrics } from './gateway.ts'
import { type InstallationView, registerInstallationMetrics } from './installation.ts'
import { registerPendingMetrics } from './pending.ts'
import { type MetricFamily, renderMetrics } from './render.ts'
import { show, showHistogram } from './show.ts'
import { registerStreamMetrics } from './streams.ts'
import { registerTrackerMetrics, type TrackersStatus, type TrackerTimings } from './tracker.ts'
import { registerUpstreamMetrics } from './upstreams.ts'
import { registerWebhookMetrics } from './webhooks.ts'

/** What the service counts, in Prometheus' form. */
export type Metrics = {
  finished(
    exchange: Pick<Finished, 'route' | 'path' | 'status' | 'seconds'> & Partial<Finished>,
  ): void
  authenticationFailed(failure: Failure): void
  watchShares(shares: Record<'connections' | 'proxied' | 'bodies', Shares>): void
  watchPools(pools: Record<'requests' | 'workers', Pool>): void
  watchLimiter(status: () => LimiterStatus): void
  watchNetworks(networks: () => Iterable<Network>): void
  /** The nodes of every network, read when metrics are collected. */
  watchUpstreams(read: () => Iterable<NetworkNodes>): void
  watchStreams(streams: ReadonlyMap<string, Streams>, sockets: Sockets): void
  watchCourier(courier: Pick<Courier, 'status' | 'timings'>): void
  watchTrackers(wallets: { status: TrackersStatus; timings(): Iterable<TrackerTimings> }): void
  watchInstallation(view: InstallationView): void
  watchPending(status: () => Record<string, Record<string, PendingStatus>>): void
  /** Counts reloads of the configuration by their outcome. */
  reloaded(outcome: ReloadOutcome['outcome']): void
  /** The metrics in the form that an `Accept` header asks for. */
  text(accept?: string): Promise<{ contentType: string; text: string }>
  /** The same as values, for a supervisor that adds up those of several processes. */
  families(): Promise<MetricFamily[]>
  /** Every metric that is registered, for the document. */
  describe(): DescribedMetric[]
}

/** A metric without its values. */
export type DescribedMetric = { name: string; help: string; type: string; labelNames: string[] }

// Gauges of prom-client that end in `_total`, which is for counters. Those without it say the same by type.
const misnamed = [
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
  'nodejs_active_resources_total',
]

/** Makes a registry of its own, so that two services in one process do not mix. */
export function createMetrics(version: string, routes: Pick<Routes, 'find'>): Metrics {
  const registry = new Registry()
  const registers = [registry]
  // Memory, event loop and garbage collection of this process; a supervisor labels them by process.
  collectDefaultMetrics({ register: registry })
  for (const name of misnamed) registry.removeSingleMetric(name)
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
  // Bounded by the routes and operations that exist, and five classes of status.
  const times = new Map<string, { labels: Record<string, string>; histogram: Histogram }>()
  showHistogram(
    registry,
    {
      name: 'portolan_http_request_seconds',
      help: 'Time to answer an HTTP request, by the class of its status.',
      labelNames: ['route', 'service', 'operation', 'status'],
    },
    () => times.values().map(({ labels, histogram }) => ({ labels, counts: histogram.read() })),
  )
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
  // Before the first reload: the configuration that was started with is applied.
  lastReload.set(1)
  return {
    reloaded(outcome) {
      reloads.inc({ outcome })
      lastReload.set(outcome === 'refused' ? 0 : 1)
    },
    authenticationFailed: ({ kind, isLimited }) =>
      failures.inc({ kind, outcome: isLimited ? 'limited' : 'refused' }),
    finished({ route, path, status, seconds: duration, facts }) {
      // Only names of the configuration and the catalogue become labels: a caller cannot make new series.
      const called = route === 'operations' ? routes.find(path) : undefined
      const operation = called?.entry.name ?? ''
      const labels = { route, service: called?.chain ?? '', operation }
      requests.inc({ ...labels, status })
      // A stream lasts as long as its client stays.
      if (route === 'events') return
      const shown = { ...labels, status: `${Math.floor(status / 100)}xx` }
      const key = Object.values(shown).join(' ')
      let time = times.get(key)
      if (!time) {
        time = { labels: shown, histogram: createHistogram(callBounds) }
        times.set(key, time)
      }
      time.histogram.add(duration, facts?.trace_id)
    },
    watchShares(shares) {
      registerShareMetrics(registry, shares)
    },
    watchPools(pools) {
      show(
        registry,
        'gauge',
        {
          name: 'portolan_database_connections',
          help: 'Connections of each pool by state, and what waits for one.',
          labelNames: ['pool', 'state'],
        },
        () =>
          Object.entries(pools).flatMap(([pool, { idleCount, totalCount, waitingCount }]) => [
            { labels: { pool, state: 'idle' }, value: idleCount },
            { labels: { pool, state: 'busy' }, value: totalCount - idleCount },
            { labels: { pool, state: 'waiting' }, value: waitingCount },
          ]),
      )
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
    watchCourier({ status, timings }) {
      registerWebhookMetrics(registry, status, timings)
    },
    watchTrackers({ status, timings }) {
      registerTrackerMetrics(registry, status, timings)
    },
    watchInstallation(view) {
      registerInstallationMetrics(registry, view)
    },
    watchPending(status) {
      registerPendingMetrics(registry, status)
    },
    text: async (accept) =>
      renderMetrics((await registry.getMetricsAsJSON()) as MetricFamily[], accept),
    families: async () =>
      ((await registry.getMetricsAsJSON()) as MetricFamily[]).map(
        ({ name, help, type, values }) => ({
          ...{ name, help, type, values },
        }),
      ),
    describe: () =>
      registry.getMetricsAsArray().map((metric) => {
        const { name, help, type, labelNames } = metric as unknown as DescribedMetric
        return { name, help, type, labelNames: [...labelNames] }
      }),
  }
}

/** Shows how many connections are open, how much of the bodies is in memory, and what was refused. */
function registerShareMetrics(
  registry: Registry,
  { connections, proxied, bodies }: Record<'connections' | 'proxied' | 'bodies', Shares>,
): void {
  const registers = [registry]
  new Gauge({
    name: 'portolan_http_connections',
    help: 'Connections that are open, WebSockets too.',
    registers,
    collect() {
      this.set(connections.status().taken)
    },
  })
  new Gauge({
    name: 'portolan_http_body_bytes',
    help: 'Bytes of request bodies in memory.',
    registers,
    collect() {
      this.set(bodies.status().taken)
    },
  })
  new Counter({
    name: 'portolan_http_refused_total',
    help: 'Connections and bodies that were refused because there were too many, by the bound that they met.',
    labelNames: ['what', 'bound'],
    registers,
    collect() {
      // The counters live in the shares; this one only shows them, and so starts from nothing at every scrape.
      this.reset()
      const open = connections.status().refused
      const behind = proxied.status().refused
      const sent = bodies.status().refused
      this.inc({ what: 'connection', bound: 'address' }, open.client + behind.client)
      this.inc({ what: 'connection', bound: 'all' }, open.all + behind.all)
      this.inc({ what: 'body', bound: 'address' }, sent.client)
      this.inc({ what: 'body', bound: 'all' }, sent.all)
    },
  })
}
