// Metrics of the recorder of pending transactions, read when they are scraped. Its bounds matter most here: public networks
// announce more than any record can hold.

import { Counter, Gauge, type Registry } from 'prom-client'
import type { PendingStatus } from '../../workers/pending/pending.ts'

/** Shows what the recorder of pending transactions counts by itself. */
export function registerPendingMetrics(
  registry: Registry,
  status: () => Record<string, Record<string, PendingStatus>>,
): void {
  const registers = [registry]
  const show = (
    kind: typeof Counter | typeof Gauge,
    name: string,
    help: string,
    read: (now: PendingStatus) => number,
  ) =>
    new kind({
      name,
      help,
      labelNames: ['chain', 'network'],
      registers,
      collect() {
        this.reset()
        for (const [chain, networks] of Object.entries(status()))
          for (const [network, now] of Object.entries(networks))
            this.inc({ chain, network }, read(now))
      },
    })
  show(
    Counter,
    'portolan_pending_recorded_total',
    'Pending transactions recorded, new or back again.',
    ({ recorded }) => recorded,
  )
  show(
    Counter,
    'portolan_pending_dropped_total',
    'Pending transactions left out or removed because a bound was reached.',
    ({ dropped }) => dropped,
  )
  show(Gauge, 'portolan_pending_kept', 'Records of pending transactions.', ({ kept }) => kept)
  show(
    Gauge,
    'portolan_pending_waiting',
    'Records of transactions that wait for a block.',
    ({ waiting }) => waiting,
  )
  show(
    Gauge,
    'portolan_pending_queued',
    'Announced transactions that are not fetched yet.',
    ({ queued }) => queued,
  )
  show(
    Gauge,
    'portolan_pending_sources',
    'Nodes that announce pending transactions.',
    ({ sources }) => sources.length,
  )
}
