import {
  createFailureBudget,
  type Failure,
  type FailureBudget,
} from '../domain/access/failure-budget.ts'
import { createShares, type Shares } from '../http/clients/shares.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import type { Config } from './config/schema.ts'

/** The bounds of connections and of bodies in memory. */
export function openShares({ server, gateway }: Config): {
  connections: Shares
  /** WebSockets of clients behind proxies, whose own connections are not seen. */
  proxied: Shares
  bodies: Shares
} {
  const { connections_per_address: perClient, connections_limit: all } = server
  // One body of the largest size always fits.
  const largest = Math.max(server.body_limit_bytes, gateway.body_limit_bytes)
  return {
    connections: createShares({ perClient, all }),
    proxied: createShares({ perClient, all }),
    bodies: createShares({
      perClient: Math.max(largest, server.body_bytes_per_address),
      all: Math.max(largest, server.body_bytes_limit),
    }),
  }
}

/** How many wrong credentials a client may try. */
export const openFailureBudget = (
  { security }: Config,
  parts: { clock: Clock; log: Log; onFailure(failure: Failure): void },
): FailureBudget =>
  createFailureBudget({
    ...parts,
    burst: security.auth_failures_burst,
    perSecond: security.auth_failures_per_second,
  })
