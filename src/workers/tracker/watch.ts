import type { Chain } from '../../chains/chain.ts'
import { type Clock, toTimestamp } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import type { Db } from '../../storage/pg/database.ts'
import { findCursor } from '../../storage/tracking/blocks.ts'
import type { NetworkName } from '../../storage/tracking/networks.ts'
import {
  type EventName,
  openEvent,
  resolveEvent,
} from '../../storage/tracking/operational-events.ts'
import type { trackingKinds } from '../../storage/tracking/tables.ts'
import type { Tracker } from './tracker.ts'

/** Whether a chain is tracked, for `/ready`, `/status`, metrics and the command line. */
export type TrackerHealth = {
  health: 'ok' | 'failing' | 'stalled'
  /** Since when it is not ok. */
  since: string | null
  /** What is wrong, in one sentence; empty while it is ok. */
  problem: string
}

/** Watches whether a chain is tracked, by this process or another one. */
export type TrackerWatch = {
  health(): TrackerHealth
  stop(): Promise<void>
}

/** What a watch needs. */
export type TrackerWatchOptions = {
  db: Db
  clock: Clock
  log: Log
  network_id: number
  name: NetworkName
  chain: Pick<Chain, 'head'>
  tracker: Pick<Tracker, 'failing'>
  pollMs?: number
  /** How long a head may be unreadable, or ahead of a cursor that does not move. */
  stalledAfterMs?: number
  /** How long a failure must last to be recorded as an event. */
  recordAfterMs?: number
}

// Longer than the time between two blocks of most chains: a cursor that moves needs no request to a node.
const usualPollMs = 15_000
const usualStalledAfterMs = 60_000
const usualRecordAfterMs = 5_000
const headTimeoutMs = 10_000

type Problem = { kind: TrackingKind; since: number; problem: string }

/**
 * Looks now and then whether the cursor moves. Where it does not, a node is asked for its head: a head
 * that is further on, or that cannot be read, means that the chain is not tracked. Every process does
 * this, so that it is noticed too when the one that tracks is gone.
 */
export function startTrackerWatch(options: TrackerWatchOptions): TrackerWatch {
  const { db, clock, log, network_id, name, chain, tracker } = options
  const { pollMs = usualPollMs, stalledAfterMs = usualStalledAfterMs } = options
  const { recordAfterMs = usualRecordAfterMs } = options
  const stopping = new AbortController()
  let cursor: { number: number; hash: Buffer } | undefined
  let movedAt = clock.now()
  let headAt = clock.now()
  let stalled: Problem | undefined
  // Only what was seen to work ends an event; a start that has seen nothing yet does not.
  let isSeenToWork = false

  const failing = (): Problem | undefined => {
    const found = tracker.failing()
    // Another process may have stored blocks since.
    if (!found || movedAt > found.since) return undefined
    const problem = `Tracking fails: ${found.reason || 'for an unknown reason'}.`
    return { kind: 'tracker_failing', since: found.since, problem }
  }

  // Called only while the cursor stands still, so that a moving tracker costs no request to a node.
  const askHead = async (): Promise<Problem | undefined> => {
    const signal = AbortSignal.any([stopping.signal, AbortSignal.timeout(headTimeoutMs)])
    try {
      const { number } = await chain.head(signal)
      headAt = clock.now()
      // A chain without new blocks.
      if (cursor && number <= cursor.number) {
        movedAt = headAt
        isSeenToWork = true
        return undefined
      }
      if (headAt - movedAt < stalledAfterMs) return undefined
      const stored = cursor ? `block ${cursor.number} is the last that is stored` : 'none is stored'
      const problem = `The nodes have block ${number}, and ${stored}.`
      return { kind: 'tracker_stalled', since: movedAt, problem }
    } catch (error) {
      const since = Math.max(headAt, movedAt)
      if (stopping.signal.aborted || clock.now() - since < stalledAfterMs) return undefined
      const reason = error instanceof Error ? error.message : String(error)
      return { kind: 'tracker_stalled', since, problem: `No node reports its head: ${reason}.` }
    }
  }

  const look = async (): Promise<void> => {
    const found = await findCursor(db, network_id)
    const at = found && { number: found.block_number, hash: found.block_hash }
    const hasMoved = at && !(cursor?.number === at.number && cursor.hash.equals(at.hash))
    if (hasMoved) {
      // The first look does not show when it moved.
      if (cursor) {
        movedAt = clock.now()
        isSeenToWork = true
      }
      cursor = at
      stalled = undefined
    } else stalled = await askHead()
    if (stalled) isSeenToWork = false
    if (!stopping.signal.aborted) await record()
  }

  const record = async (): Promise<void> => {
    const now = new Date(clock.now())
    for (const [kind, problem] of [
      ['tracker_failing', failing()],
      ['tracker_stalled', stalled],
      // An event is opened only after some seconds, and a start that has not seen the cursor move
      // resolves none. Otherwise each restart would close and open it.
    ] as const) {
      if (problem && now.getTime() - problem.since >= recordAfterMs) {
        const event = { ...name, kind, detail: problem.problem }
        if (await openEvent(db, { ...event, now })) logEvent(log, 'opened', event)
      } else if (!problem && isSeenToWork && (await resolveEvent(db, { ...name, kind, now })))
        logEvent(log, 'resolved', { ...name, kind })
    }
  }

  const run = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      await look().catch((error: unknown) => {
        if (!stopping.signal.aborted) log.debug({ err: error, ...name }, 'tracker check failed')
      })
      await clock.sleep(pollMs, stopping.signal).catch(() => {})
    }
  }
  const running = run()

  return {
    health: () => {
      const problem = failing() ?? stalled
      if (!problem) return { health: 'ok', since: null, problem: '' }
      return {
        health: problem.kind === 'tracker_failing' ? 'failing' : 'stalled',
        since: toTimestamp(problem.since),
        problem: problem.problem,
      }
    },
    stop: async () => {
      stopping.abort()
      await running
    },
  }
}

type TrackingKind = (typeof trackingKinds)[number]

// The names are part of the interface: alerts of operators match them.
const names = {
  tracker_failing: { opened: 'tracker_failing', resolved: 'tracker_recovered' },
  tracker_stalled: { opened: 'tracker_stalled', resolved: 'tracker_recovered' },
  gap: { opened: 'gap_opened', resolved: 'gap_closed' },
} as const satisfies Record<TrackingKind, { opened: string; resolved: string }>

const messages: Readonly<Record<TrackingKind, { opened: string; resolved: string }>> = {
  tracker_failing: { opened: 'tracking fails', resolved: 'tracking works again' },
  tracker_stalled: { opened: 'tracking has stalled', resolved: 'tracking moves on again' },
  gap: { opened: 'blocks are missing', resolved: 'missing blocks were filled in' },
}

/** Logs that an event was opened or resolved, with its stable name in the field `event`. */
export function logEvent(
  log: Log,
  state: 'opened' | 'resolved',
  { kind, ...fields }: EventName & { kind: TrackingKind; detail?: string },
): void {
  const level = state === 'opened' ? 'error' : 'info'
  log[level]({ event: names[kind][state], ...fields }, messages[kind][state])
}
