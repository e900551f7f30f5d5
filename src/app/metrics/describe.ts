import { createMetrics, type DescribedMetric } from './metrics.ts'

/** Every metric of the service, in the order of their names, for the generated document. Nothing is collected. */
export function describeMetrics(): DescribedMetric[] {
  const metrics = createMetrics('', { find: () => undefined })
  // Readers are called on a scrape only, and there is none.
  const unread = undefined as never
  metrics.watchShares({ connections: unread, proxied: unread, bodies: unread })
  metrics.watchPools({ requests: unread, workers: unread })
  metrics.watchLimiter(unread)
  metrics.watchCourier({ status: unread, timings: unread })
  metrics.watchTrackers({ status: unread, timings: unread })
  metrics.watchInstallation({ db: unread, dataDir: '', isOwn: unread })
  metrics.watchPending(unread)
  metrics.watchNetworks(unread)
  metrics.watchUpstreams(unread)
  metrics.watchStreams(unread, unread)
  return metrics.describe().sort((a, b) => (a.name < b.name ? -1 : 1))
}
