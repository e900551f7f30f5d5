// The open WebSockets of a process: how many a key and a network have, regular checks of each, and the list for operators.

import type { Principal } from '../../domain/access/principal.ts'
import type { Network } from '../../gateway/network.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import type { WebSocketClient } from '../../storage/metrics/websocket-clients.ts'
import type { Change } from '../../storage/pg/changes.ts'
import type { Connection } from './connection.ts'

/** The open connections. */
export type OpenConnections = {
  /** The number of the next connection. */
  nextNumber(): number
  /** Counts a connection of a key, or one less. Handshakes count as well: many of one key may be under way. */
  countKey(credential_id: string, change: 1 | -1): void
  ofKey(credential_id: string): number
  /** Counts a connection of a network, or one less. */
  countPath(path: string, change: 1 | -1): void
  byPath(): ReadonlyMap<string, number>
  add(connection: Connection, principal: Principal): void
  remove(connection: Connection): void
  /** A credential or an organization is not as it was. */
  forget(change: Change): void
  closeNetwork(network: Network, close: { code: number; reason: string }): void
  /** The open connections, of one organization or of all; the oldest of them, up to a bound. */
  clients(organization_id: string | undefined): WebSocketClient[]
  all(): Connection[]
}

// A list for people: those beyond it are counted by ListNodes.
const mostListed = 1_000

// Checked in parts: thousands of pings at once would delay all clients.
const parts = 30

/** Keeps them, and checks each once in `beatMs`. */
export function createOpenConnections(options: {
  clock: Clock
  log: Log
  beatMs: number
  signal: AbortSignal
}): OpenConnections {
  const { clock, log, beatMs, signal } = options
  // One part per tick: connections are spread evenly, in the order of their arrival.
  const rings = Array.from({ length: parts }, () => new Set<Connection>())
  const ringOf = ({ number }: Connection) => rings[number % parts] as Set<Connection>
  const perKey = new Map<string, number>()
  const perPath = new Map<string, number>()
  let turn = 0

  // Keys without connections leave the map, so that it is bounded by the open ones.
  const count = (map: Map<string, number>, key: string, change: number) => {
    const now = (map.get(key) ?? 0) + change
    if (now > 0) map.set(key, now)
    else map.delete(key)
  }

  /** A key that expires before the next check of its connection is checked at its expiry. */
  const expireSoon = (connection: Connection, principal: Principal | undefined) => {
    const left = (principal?.restrictions?.expireAt ?? Number.POSITIVE_INFINITY) - clock.now()
    if (left > beatMs) return
    // A timer may be early by a moment.
    clock.sleep(Math.max(left, 0) + 5, signal).then(
      () => connection.recheck(),
      () => {},
    )
  }

  const all = () => rings.flatMap((ring) => [...ring])

  const beat = async () => {
    for (let part = 0; !signal.aborted; part = (part + 1) % parts) {
      await clock.sleep(beatMs / parts, signal).catch(() => {})
      if (signal.aborted) return
      for (const connection of [...(rings[part] as Set<Connection>)]) {
        connection.beat()
        expireSoon(connection, await connection.recheck())
      }
    }
  }
  void beat().catch((error) => log.error({ err: error }, 'connection check failed'))

  return {
    nextNumber: () => turn++,
    countKey: (credential_id, change) => count(perKey, credential_id, change),
    ofKey: (credential_id) => perKey.get(credential_id) ?? 0,
    countPath: (path, change) => count(perPath, path, change),
    byPath: () => perPath,
    add(connection, principal) {
      ringOf(connection).add(connection)
      expireSoon(connection, principal)
    },
    remove: (connection) => void ringOf(connection).delete(connection),
    forget(change) {
      if (change.kind !== 'credential' && change.kind !== 'organization') return
      for (const connection of all()) {
        const { organization_id, credential_id } = connection.principal
        if (organization_id !== change.organization_id) continue
        if (change.kind === 'credential' && credential_id !== change.credential_id) continue
        void connection.recheck().then((principal) => expireSoon(connection, principal))
      }
    },
    closeNetwork(network, { code, reason }) {
      for (const connection of all())
        if (connection.network === network) connection.close(code, reason)
    },
    clients: (organization_id) =>
      all()
        .filter(
          ({ principal }) =>
            organization_id === undefined || principal.organization_id === organization_id,
        )
        .sort((a, b) => a.openTime - b.openTime)
        .slice(0, mostListed)
        .map((connection) => ({
          client_number: connection.number,
          organization_id: connection.principal.organization_id,
          credential_id: connection.principal.credential_id,
          chain: connection.network.chain,
          network: connection.network.network,
          client: connection.client,
          open_time: new Date(connection.openTime),
          subscriptions: connection.subscriptions(),
          buffered_bytes: connection.bufferedBytes(),
        })),
    all,
  }
}
