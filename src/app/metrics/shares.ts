import { Counter, Gauge, type Registry } from 'prom-client'
import type { Shares } from '../../http/clients/shares.ts'

/** Shows how many connections are open, how much of the bodies is in memory, and what was refused. */
export function registerShareMetrics(
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
