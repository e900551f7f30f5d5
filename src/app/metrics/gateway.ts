import { Counter, Gauge, type Registry } from 'prom-client'
import type { Network } from '../../gateway/network.ts'
import { latencyBounds, outcomes } from '../../gateway/usage/counters.ts'

type Sample = { labels: Record<string, string | number>; value: number; metricName?: string }

/**
 * Exports counters that networks keep themselves. The numbers are read on each scrape: a
 * labelled counter costs more than a whole look-up in the cache.
 */
export function registerGatewayMetrics(
  registry: Registry,
  networks: () => Iterable<Network>,
): void {
  const eachNetwork = (make: (network: Network, add: (sample: Sample) => void) => void) => () => {
    const samples: Sample[] = []
    for (const network of networks()) make(network, (sample) => samples.push(sample))
    return samples
  }
  const show = (
    kind: typeof Counter | typeof Gauge,
    name: string,
    help: string,
    labelNames: string[],
    read: () => Sample[],
  ) => {
    new kind({
      name,
      help,
      labelNames,
      registers: [registry],
      collect() {
        this.reset()
        for (const { labels, value } of read()) this.inc(labels, value)
      },
    })
  }

  show(
    Counter,
    'portolan_gateway_calls_total',
    'Calls of the gateway by method and outcome.',
    ['chain', 'network', 'method', 'outcome'],
    eachNetwork(({ chain, network, counters }, add) => {
      for (const [index, method] of counters.methods.entries())
        for (const [at, outcome] of outcomes.entries()) {
          const value = counters.calls(index, at)
          if (value > 0) add({ labels: { chain, network, method, outcome }, value })
        }
    }),
  )
  show(
    Counter,
    'portolan_gateway_cache_total',
    'Calls that the cache could answer, by whether it did.',
    ['chain', 'network', 'result'],
    eachNetwork(({ chain, network, counters }, add) => {
      const { hits, misses } = counters.cache()
      add({ labels: { chain, network, result: 'hit' }, value: hits })
      add({ labels: { chain, network, result: 'miss' }, value: misses })
    }),
  )
  show(
    Gauge,
    'portolan_gateway_cache_bytes',
    'Memory that kept answers take.',
    ['chain', 'network'],
    eachNetwork(({ chain, network, cacheBytes }, add) =>
      add({ labels: { chain, network }, value: cacheBytes() }),
    ),
  )
  show(
    Gauge,
    'portolan_gateway_network_idle',
    '1 while the network is not used and its nodes are not connected.',
    ['chain', 'network'],
    eachNetwork(({ chain, network, isAwake }, add) =>
      add({ labels: { chain, network }, value: isAwake() ? 0 : 1 }),
    ),
  )
  registerLatency(registry, networks)
}

const latencyName = 'portolan_gateway_call_seconds'

// A histogram whose buckets are counted elsewhere: prom-client has none that could be filled.
function registerLatency(registry: Registry, networks: () => Iterable<Network>): void {
  const read = (): Sample[] => {
    const values: Sample[] = []
    for (const { chain, network, counters } of networks())
      for (const [index, method] of counters.methods.entries()) {
        const { buckets, sum } = counters.latency(index)
        const labels = { chain, network, method }
        let count = 0
        for (const [at, one] of buckets.entries()) {
          count += one
          const le = latencyBounds[at] ?? '+Inf'
          values.push({
            labels: { ...labels, le },
            value: count,
            metricName: `${latencyName}_bucket`,
          })
        }
        if (count === 0) values.length -= buckets.length
        else
          values.push(
            { labels, value: sum, metricName: `${latencyName}_sum` },
            { labels, value: count, metricName: `${latencyName}_count` },
          )
      }
    return values
  }
  const metric = {
    name: latencyName,
    help: 'Time to answer a call of the gateway.',
    type: 'histogram',
    aggregator: 'sum',
    get: async () => ({
      name: latencyName,
      help: metric.help,
      type: metric.type,
      aggregator: metric.aggregator,
      values: read(),
    }),
    reset() {},
  }
  registry.registerMetric(metric as never)
}
