import { Counter, Gauge, type Registry } from 'prom-client'
import type { Courier, CourierStatus } from '../../workers/webhooks/courier.ts'
import { showHistogram } from './show.ts'

/** Exports the counters of the courier, read on each scrape. */
export function registerWebhookMetrics(
  registry: Registry,
  status: () => CourierStatus,
  timings: Courier['timings'],
): void {
  const registers = [registry]
  new Counter({
    name: 'portolan_webhook_attempts_total',
    help: 'Attempts to deliver a notification by outcome.',
    labelNames: ['outcome'],
    registers,
    collect() {
      const { delivered, failed } = status()
      // The courier keeps the counters; this one only shows them.
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
    'Webhooks with something to send, now or later, of the last look: of an organization with more than 128 of them, some.',
    ({ queued_webhooks }) => queued_webhooks,
  )
  gauge(
    'portolan_webhook_oldest_due_seconds',
    'How long the oldest due notification has been due; a receiver that fails lets it grow.',
    ({ oldest_due_seconds }) => oldest_due_seconds,
  )
  showHistogram(
    registry,
    {
      name: 'portolan_webhook_attempt_seconds',
      help: 'Time of an attempt to deliver a notification, by outcome.',
      labelNames: ['outcome'],
    },
    () => {
      const { delivered, failed } = timings()
      return [
        { labels: { outcome: 'delivered' }, counts: delivered },
        { labels: { outcome: 'failed' }, counts: failed },
      ]
    },
  )
  showHistogram(
    registry,
    {
      name: 'portolan_webhook_delivery_seconds',
      help: 'From the creation of a notification to the attempt that was accepted, retries included.',
    },
    () => [{ labels: {}, counts: timings().latency }],
  )
  showHistogram(
    registry,
    {
      name: 'portolan_block_to_webhook_seconds',
      help: 'From the time of a block to the accepted delivery of a transfer in it, confirmations included.',
    },
    () => [{ labels: {}, counts: timings().fromBlock }],
  )
}
