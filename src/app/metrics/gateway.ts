import { Counter, Gauge, type Registry } from 'prom-client'
import type { Network } from '../../gateway/network.ts'
import { outcomes } from '../../gateway/usage/counters.ts'
import { showHistogram } from './show.ts'

type Sample = { labels: Record<string, string>; value: number }

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
        // The networks keep the counters; this one only shows them.
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
          // Every method with every outcome would be mostly series of zeros.
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
  showHistogram(
    registry,
    {
      name: 'portolan_gateway_call_seconds',
      help: 'Time to answer a call of the gateway, by method and by what its answer depends on.',
      labelNames: ['chain', 'network', 'method', 'class'],
    },
    function* () {
      for (const { chain, network, counters } of networks())
        for (const [index, method] of counters.methods.entries()) {
          const counts = counters.latency(index)
          // Most methods are never called: their empty series would be most of the text.
          if (counts.buckets.every((count) => count === 0)) continue
          yield {
            labels: { chain, network, method, class: counters.classes[index] ?? 'other' },
            counts,
          }
        }
    },
  )
}
