// Sessions are bounded by number; the one that was opened first makes room. It hands its counters over before it leaves.
// What it had seen is forgotten: a read of that key may then show an older block once.

import type { Principal } from '../../domain/access/principal.ts'
import type { Counters } from '../usage/counters.ts'
import type { UsageDelta } from '../usage/usage.ts'
import { createSession, type Session } from './session.ts'

/** The keys that use a network, as far as memory reaches. */
export type Sessions = {
  of(principal: Principal): Session
  /** What was counted since this was last asked. */
  takeUsage(): UsageDelta[]
}

/** Holds the sessions of one network; beyond the bound the one that was opened first makes room. */
export function createSessions(options: {
  chain: string
  network: string
  counters: Counters
  maxSessions?: number
  /** The counts of a session that leaves memory. */
  spill(deltas: UsageDelta[]): void
}): Sessions {
  const { chain, network, counters, spill, maxSessions = 10_000 } = options
  const sessions = new Map<string, Session>()
  const { methods } = counters

  const take = (session: Session): UsageDelta[] => {
    if (!session.counted) return []
    const { organization_id, credential_id } = session.principal
    const deltas: UsageDelta[] = []
    for (const [index, method] of methods.entries()) {
      const call_count = session.calls[index] ?? 0
      if (call_count === 0) continue
      const error_count = session.errors[index] ?? 0
      deltas.push({
        organization_id,
        credential_id,
        chain,
        network,
        method,
        call_count,
        error_count,
        refused_count: session.refused[index] ?? 0,
        latency_counts: takeLatency(session.latency[index]),
      })
    }
    session.calls.fill(0)
    session.errors.fill(0)
    session.refused.fill(0)
    session.counted = false
    return deltas
  }

  const takeLatency = (counts: Float64Array | undefined): number[] | undefined => {
    if (!counts) return undefined
    const taken = [...counts]
    counts.fill(0)
    return taken
  }

  const open = (principal: Principal): Session => {
    if (sessions.size >= maxSessions) {
      // A Map keeps the order of insertion. The longest unused would be better and would cost a change of the map with every
      // call, which the gateway avoids (docs/decisions/gateway.md).
      const [oldest] = sessions
      if (oldest) {
        sessions.delete(oldest[0])
        spill(take(oldest[1]))
      }
    }
    const session = createSession(principal, methods.length - 1)
    sessions.set(principal.credential_id, session)
    return session
  }

  return {
    of: (principal) => {
      const session = sessions.get(principal.credential_id)
      if (!session) return open(principal)
      // What the key may do can have changed since.
      session.principal = principal
      return session
    },
    takeUsage: () => [...sessions.values()].flatMap(take),
  }
}
