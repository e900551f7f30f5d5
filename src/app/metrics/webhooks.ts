import { Counter, Gauge, type Registry } from 'prom-client'
import type { CourierStatus } from '../../workers/webhooks/courier.ts'

/** Exports the counters of the courier, read on each scrape. */
export function registerWebhookMetrics(registry: Registry, status: () => CourierStatus): void {
  const registers = [registry]
  new Counter({
    name: 'portolan_webhook_attempts_total',
    help: 'Attempts to deliver a notification by outcome.',
    labelNames: ['outcome'],
    registers,
    collect() {
      const { delivered, failed } = status()
      this.reset()
      this.inc({ outcome: 'delivered' }, delivered)
      this.inc({ outcome: 'failed' }, failed)
    },
  })
  const gauge = (name: string, help: string, read: (now: CourierStatus) => number) =>
    new Gauge({
      name,
      help,
      registers,
      collect() {
        this.set(read(status()))
      },
    })
  gauge('portolan_webhook_in_flight', 'Deliveries being sent.', ({ in_flight }) => in_flight)
  gauge(
    'portolan_webhook_claimed',
    'Deliveries that this process has in hand.',
    (now) => now.claimed,
  )
  gauge(
    'portolan_webhook_unrecorded',
    'Attempts that the database does not know of yet.',
    ({ unrecorded }) => unrecorded,
  )
  gauge(
    'portolan_webhook_queued_webhooks',
    'Webhooks with something to send, now or later.',
    ({ queued_webhooks }) => queued_webhooks,
  )
  gauge(
    'portolan_webhook_oldest_due_seconds',
    'How long the oldest due notification has been due; a receiver that fails lets it grow.',
    ({ oldest_due_seconds }) => oldest_due_seconds,
  )
}
