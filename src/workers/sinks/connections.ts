// Connections to brokers, one per sink and process. A handshake with TLS and SASL takes several round trips, which each
// small batch of events would otherwise pay again. The settings are part of the key, so that a change of the credentials
// takes effect with the next batch.

import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import type { ClaimedSink } from '../../storage/webhooks/sinks.ts'
import { openKafka } from './kafka.ts'
import { openNats } from './nats.ts'
import type { AddressGuard, Publisher, PublisherOptions } from './publisher.ts'

type Kept = { key: string; publisher: Promise<Publisher>; usedTime: number }

// A connection without use is closed after this time, and the oldest ones where there are more.
const idleMs = 120_000
const mostKept = 200
const closeTimeoutMs = 2_000

/** Keeps the connections of sinks open between their events. */
export function createConnections(options: {
  guard: AddressGuard
  timeoutMs: number
  clock: Clock
  log: Log
}) {
  const { guard, timeoutMs, clock, log } = options
  const kept = new Map<string, Kept>()

  const close = async ({ publisher }: Kept): Promise<void> => {
    const closing = publisher.then((open) => open.stop())
    // A broker that does not answer must not delay others.
    const { promise, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(resolve, closeTimeoutMs)
    await Promise.race([closing, promise]).catch((error: unknown) =>
      log.debug({ err: error }, 'closing the connection of a sink failed'),
    )
    clearTimeout(timer)
  }

  const drop = async (webhook_id: string): Promise<void> => {
    const known = kept.get(webhook_id)
    kept.delete(webhook_id)
    if (known) await close(known)
  }

  return {
    /** The connection of a sink; another one where its settings have changed. */
    get: async (
      sink: Pick<ClaimedSink, 'webhook_id' | 'sink_type' | 'settings' | 'secret_sealed'>,
      describe: () => Pick<PublisherOptions, 'source' | 'settings' | 'credentials'>,
    ): Promise<Publisher> => {
      const key = `${JSON.stringify(sink.settings)}/${sink.secret_sealed.toString('base64')}`
      const known = kept.get(sink.webhook_id)
      if (known?.key === key) {
        known.usedTime = clock.now()
        return await known.publisher
      }
      await drop(sink.webhook_id)
      const open = sink.sink_type === 'SINK_TYPE_NATS' ? openNats : openKafka
      const publisher = open({ ...describe(), guard, timeoutMs })
      kept.set(sink.webhook_id, { key, publisher, usedTime: clock.now() })
      return await publisher
    },
    /** Closes a connection that failed. */
    drop,
    closeIdle: (): void => {
      const byUse = [...kept].sort(([, a], [, b]) => a.usedTime - b.usedTime)
      const surplus = byUse.length - mostKept
      for (const [index, [webhook_id, { usedTime }]] of byUse.entries())
        if (index < surplus || clock.now() - usedTime > idleMs) void drop(webhook_id)
    },
    stop: async (): Promise<void> => {
      await Promise.all([...kept.keys()].map(drop))
    },
  }
}
