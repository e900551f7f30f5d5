import type { NetworkNodes } from '../../domain/context.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import type { Db } from '../../storage/pg/database.ts'
import { openEvent, resolveEvent } from '../../storage/tracking/operational-events.ts'

/** What the watch needs. */
export type NodeWatchOptions = {
  db: Db
  clock: Clock
  log: Log
  nodes(): Iterable<NetworkNodes>
  pollMs?: number
  /** How long a node must be lost, or back, until that counts. */
  settledMs?: number
}

type Seen = { isLost: boolean; since: number; isRecorded: boolean }

// States in which no call can succeed. A slow or lagging node is degraded, not lost.
const lostStates: ReadonlySet<string> = new Set(['unreachable', 'open_circuit', 'wrong_chain'])

/**
 * Records nodes that are lost and that are back. Every process looks at its own connections: the first one opens the
 * event, and one that has used the node for a while closes it. A process opens an event once for each time that it
 * lost the node, so that two processes that disagree do not alternate.
 */
export function startNodeWatch(options: NodeWatchOptions): { stop(): Promise<void> } {
  const { db, clock, log, nodes, pollMs = 5_000, settledMs = 30_000 } = options
  const stopping = new AbortController()
  const seen = new Map<string, Seen>()

  const look = async (): Promise<void> => {
    const now = clock.now()
    const known = new Set<string>()
    for (const { chain, network, upstreams } of nodes())
      for (const { name, state, reason } of upstreams) {
        const key = `${chain}/${network}/${name}`
        // The gateway and the tracker may both list a node that they share.
        if (known.has(key)) continue
        known.add(key)
        // One that is starting or idle says nothing.
        const isLost = lostStates.has(state)
        if (!isLost && state !== 'healthy' && state !== 'degraded') continue
        let one = seen.get(key)
        if (one?.isLost !== isLost) {
          one = { isLost, since: now, isRecorded: false }
          seen.set(key, one)
        }
        // Some seconds of a lost connection are usual; an event is meant for what lasts.
        if (one.isRecorded || now - one.since < settledMs) continue
        const event = { kind: 'node_lost', chain, network, subject: name } as const
        const at = new Date(now)
        if (isLost) {
          const detail = `The node is ${state.replace('_', ' ')}${reason ? `: ${reason}` : ''}.`
          if (await openEvent(db, { ...event, detail, now: at }))
            log.error({ event: 'node_lost', chain, network, subject: name, detail }, 'node lost')
        } else if (await resolveEvent(db, { ...event, now: at }))
          log.info({ event: 'node_recovered', chain, network, subject: name }, 'node is back')
        one.isRecorded = true
      }
    for (const key of seen.keys()) if (!known.has(key)) seen.delete(key)
  }

  const run = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      await look().catch((error: unknown) => log.debug({ err: error }, 'node check failed'))
      await clock.sleep(pollMs, stopping.signal).catch(() => {})
    }
  }
  const running = run()
  return {
    stop: async () => {
      stopping.abort()
      await running
    },
  }
}
