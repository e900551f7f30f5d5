// Changes that other processes announce by NOTIFY, those of keys and organizations over Redis too. They are hints: a lost connection drops them. After a reconnect
// rate-limit records are emptied, gateway keys are confirmed again before they count, and couriers and streams look for
// themselves.

import type { Log } from '../lib/log.ts'
import { createKeyHolder } from '../storage/access/key-holders.ts'
import type { Sealer } from '../storage/access/seal.ts'
import { type Change, listenForChanges } from '../storage/pg/changes.ts'
import { courierTopic } from '../storage/webhooks/notifications.ts'
import type { EventHub } from '../workers/events/hub.ts'
import type { Courier } from '../workers/webhooks/courier.ts'
import type { Access } from './access.ts'
import type { ServiceDatabase } from './database.ts'
import type { Wallets } from './wallets.ts'

/** Passes on the changes that other processes announce. */
export function listenToChanges(parts: {
  server: ServiceDatabase['server']
  log: Log
  access: Pick<Access, 'authenticator' | 'keys' | 'records' | 'changes'>
  courier: Pick<Courier, 'wake'> | undefined
  sealer: Pick<Sealer, 'key_ids'>
  hub: Pick<EventHub, 'wake'> | undefined
  forgetInSockets(change: Change): void
  onReconnect(): void
  /** A network is tracked, or shall be. */
  onTrack: Wallets['join']
}) {
  const { server, log, access, courier, sealer, hub, forgetInSockets } = parts
  const { authenticator, keys, records } = access
  const forget = (change: Change) => {
    // Every cache decides by itself whether a change concerns it.
    keys.forget(change)
    authenticator.forget(change)
    forgetInSockets(change)
  }
  // A change that comes both ways is forgotten twice, which costs a look-up.
  const published = access.changes?.listen(forget)
  const announced = listenForChanges({
    connection: server.direct,
    log,
    onChange: (change) => {
      forget(change)
      if (change.kind === 'wake' && change.topic === courierTopic) {
        courier?.wake()
        hub?.wake()
      }
      if (change.kind === 'track') parts.onTrack(change)
      if (change.kind === 'rate_limit') records.forget(change.organization_id)
    },
    onReconnect: () => {
      // Changes of the time without a connection are unknown, so everything that was cached is read
      // again.
      records.forget()
      keys.connected()
      // Notifications queued while the connection was lost were not announced.
      courier?.wake()
      hub?.wake()
      parts.onReconnect()
    },
    onLost: keys.disconnected,
    // `portolan master-key rotate` waits until every service opens with the new key.
    onSession: createKeyHolder(() => sealer.key_ids),
  })
  return {
    stop: async () => {
      await Promise.all([announced.stop(), published?.then(({ stop }) => stop())])
    },
  }
}
