// Metrics of streams. The parts count by themselves, in plain numbers on the path of each notification, and are read when
// they are scraped: a counter of the library costs a look-up of its labels with every call.

import { Counter, Gauge, type Registry } from 'prom-client'
import type { Streams } from '../../gateway/streams/feed-streams.ts'
import type { Sockets } from '../../http/websocket/websocket.ts'

/** Shows what filters, subscriptions and WebSockets count by themselves. */
export function registerStreamMetrics(
  registry: Registry,
  streams: ReadonlyMap<string, Streams>,
  sockets: Sockets,
): void {
  const registers = [registry]
  const labelNames = ['chain', 'network']
  const show = (
    kind: typeof Counter | typeof Gauge,
    name: string,
    help: string,
    read: (stream: Streams, path: string) => number | undefined,
  ) => {
    new kind({
      name,
      help,
      labelNames,
      registers,
      collect() {
        this.reset()
        for (const [path, stream] of streams) {
          const [, chain = '', network = ''] = path.split('/')
          const value = read(stream, path)
          if (value !== undefined) this.inc({ chain, network }, value)
        }
      },
    })
  }
  show(
    Gauge,
    'portolan_gateway_connections',
    'WebSockets that are open.',
    (_, path) => sockets.connections().get(path) ?? 0,
  )
  show(Gauge, 'portolan_gateway_subscriptions', 'Subscriptions of all WebSockets.', (one) =>
    one.subscriptions.size(),
  )
  show(Gauge, 'portolan_gateway_filters', 'Filters of all keys.', (one) => one.filters.size())
  show(
    Gauge,
    'portolan_gateway_feed_head',
    'The block up to which clients have received everything; absent without clients.',
    (one) => one.feed.tip()?.number,
  )
  show(
    Counter,
    'portolan_gateway_notifications_total',
    'Notifications that were pushed to WebSockets.',
    (one) => one.subscriptions.notifications(),
  )
  new Counter({
    name: 'portolan_gateway_slow_clients_total',
    help: 'WebSockets that were closed because their clients did not read.',
    registers,
    collect() {
      this.reset()
      this.inc(sockets.overflows())
    },
  })
}
