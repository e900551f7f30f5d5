// Events that are not stored: heads, reorganizations, problems, nodes and attempts of deliveries. While a stream is
// open, one loop of the process reads rows and memory once a second. Without a stream it reads nothing.
// Reorganizations are passed on when they happen: the loop would miss the short ones.

import type { NetworkNodes } from '../../domain/context.ts'
import { presentNode, presentProblem } from '../../domain/events/present.ts'
import type { Clock } from '../../lib/clock.ts'
import { toTimestamp } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import type { Db } from '../../storage/pg/database.ts'
import { listHeads } from '../../storage/tracking/heads.ts'
import type { NetworkName } from '../../storage/tracking/networks.ts'
import { listEvents } from '../../storage/tracking/operational-events.ts'
import type { ListedEventRow } from '../../storage/tracking/tables.ts'
import { listRecentAttempts } from '../../storage/webhooks/streams.ts'
import { liveEvent, type StreamEvent } from './event.ts'

/** A network whose live events are wanted. */
export type LiveNetwork = NetworkName & { network_id: number }

/** Which live events a stream wants. */
export type LiveListener = {
  organization_id: string
  /** Those that are tracked. */
  networks: readonly LiveNetwork[]
  /** Whether it is about a network; also about one that is not tracked. */
  covers(name: NetworkName): boolean
  isAdmin: boolean
  wants(type: string): boolean
  onEvent(event: StreamEvent): void
}

/** Blocks that were replaced, both ends included. */
export type ReplacedBlocks = { from_block: number; to_block: number }

/** Passes live events on. */
export type LiveEvents = {
  join(listener: LiveListener): () => void
  /** Blocks of a network were replaced. */
  reorganized(name: NetworkName, blocks: ReplacedBlocks): void
  stop(): Promise<void>
}

const turnMs = 1_000
// An attempt is stored when it has ended; it may have begun this long before.
const attemptWindowMs = 60_000
// Bounds of one look, so that a busy organization does not make each second longer than the one
// before.
const attemptsAtOnce = 200
const shownProblems = 50

/** Starts the loop. */
export function startLiveEvents(options: {
  db: Db
  clock: Clock
  log: Log
  nodes(): Iterable<NetworkNodes>
}): LiveEvents {
  const { db, clock, log, nodes } = options
  const listeners = new Set<LiveListener>()
  const stopping = new AbortController()
  // What was seen last, by kind. Cleared when the last stream closes, so that the first one that
  // opens after it gets the heads at once.
  const heads = new Map<number, string>()
  let attempts = new Map<string, number>()
  let problems: Map<string, ListedEventRow> | undefined
  let states: Map<string, string> | undefined
  let joined: AbortController | undefined

  const send = (
    event: StreamEvent,
    { chain, network }: NetworkName,
    isWanted: (listener: LiveListener) => boolean = () => true,
  ) => {
    for (const listener of listeners)
      if (listener.covers({ chain, network }) && listener.wants(event.type) && isWanted(listener))
        listener.onEvent(event)
  }
  const isAdmin = (listener: LiveListener) => listener.isAdmin
  const isAny = (type: string, isWanted: (listener: LiveListener) => boolean = () => true) =>
    [...listeners].some((listener) => listener.wants(type) && isWanted(listener))

  const lookAtHeads = async (now: Date) => {
    const networks = new Map<number, LiveNetwork>()
    for (const listener of listeners)
      for (const network of listener.networks) networks.set(network.network_id, network)
    for (const known of heads.keys()) if (!networks.has(known)) heads.delete(known)
    for (const head of await listHeads(db, [...networks.keys()])) {
      const name = networks.get(head.network_id)!
      const hash = head.block_hash.toString('hex')
      if (heads.get(head.network_id) === hash) continue
      heads.set(head.network_id, hash)
      const { block_number, block_time } = head
      send(
        liveEvent('head', name, now, {
          block_number: `${block_number}`,
          block_time: block_time && toTimestamp(block_time),
        }),
        name,
      )
    }
  }

  // Problems belong to the installation, so only administrators see them.
  const lookAtProblems = async (now: Date) => {
    if (!isAny('problem', isAdmin)) {
      problems = undefined
      return
    }
    const { open, resolved } = await listEvents(db, shownProblems)
    const found = new Map([...resolved, ...open].map((row) => [keyOf(row), row]))
    // A problem that began and ended between two looks is still shown; older ones were shown
    // before.
    const recent = now.getTime() - 10 * turnMs
    for (const [key, row] of problems ? found : []) {
      const before = problems?.get(key)
      const isNews = before
        ? before.resolve_time === null && row.resolve_time !== null
        : row.resolve_time === null || row.resolve_time.getTime() > recent
      if (isNews) send(liveEvent('problem', row, now, presentProblem(row)), row, isAdmin)
    }
    problems = found
  }

  // From memory: every process has its own connections, and its own view of them.
  const lookAtNodes = (now: Date) => {
    if (!isAny('node', isAdmin)) {
      states = undefined
      return
    }
    const found = new Map<string, string>()
    for (const { chain, network, upstreams } of nodes())
      for (const node of upstreams) {
        const key = `${chain}/${network}/${node.name}`
        found.set(key, node.state)
        if (states && states.get(key) !== node.state)
          send(
            liveEvent('node', { chain, network }, now, presentNode({ chain, network }, node)),
            { chain, network },
            isAdmin,
          )
      }
    states = found
  }

  const lookAtAttempts = async (now: Date) => {
    const wanting = [...listeners].filter((listener) => listener.wants('delivery'))
    const organizations = [...new Set(wanting.map(({ organization_id }) => organization_id))]
    const since = new Date(now.getTime() - attemptWindowMs)
    const isFirst = attempts.size === 0
    const rows =
      organizations.length > 0
        ? await listRecentAttempts(db, organizations, { since, limit: attemptsAtOnce })
        : []
    const known = new Map([...attempts].filter(([, time]) => time > since.getTime()))
    for (const row of rows) {
      const key = `${row.webhook_id}/${row.sequence}/${row.attempt}`
      if (known.has(key)) continue
      known.set(key, row.attempt_time.getTime())
      // What ended before the streams were opened is not news.
      const ended = row.attempt_time.getTime() + row.duration_ms
      if (isFirst && ended < now.getTime() - 2 * turnMs) continue
      for (const listener of wanting) {
        const name = listener.networks.find(({ network_id }) => network_id === row.network_id)
        if (listener.organization_id === row.organization_id && name)
          listener.onEvent(
            liveEvent('delivery', name, row.attempt_time, {
              webhook_id: row.webhook_id,
              webhook_history_id: row.webhook_history_id,
              sequence: row.sequence,
              attempt: row.attempt,
              webhook_status: row.webhook_status,
              status_code: row.status_code,
              error: row.error ?? '',
              duration_ms: row.duration_ms,
            }),
          )
      }
    }
    attempts = known
  }

  const run = async () => {
    while (!stopping.signal.aborted) {
      if (listeners.size === 0) {
        heads.clear()
        attempts = new Map()
        problems = states = undefined
        joined = new AbortController()
        const signal = AbortSignal.any([joined.signal, stopping.signal])
        // Until a stream joins; the hour only bounds a wake-up that was lost.
        await clock.sleep(3_600_000, signal).catch(() => {})
        joined = undefined
        continue
      }
      const now = new Date(clock.now())
      try {
        await lookAtHeads(now)
        await lookAtProblems(now)
        lookAtNodes(now)
        await lookAtAttempts(now)
      } catch (error) {
        log.warn({ err: error }, 'live events could not be read')
      }
      await clock.sleep(turnMs, stopping.signal).catch(() => {})
    }
  }
  const running = run()

  return {
    join(listener) {
      listeners.add(listener)
      joined?.abort()
      return () => listeners.delete(listener)
    },
    reorganized(name, { from_block, to_block }) {
      const data = { from_block: `${from_block}`, to_block: `${to_block}` }
      send(liveEvent('reorganization', name, new Date(clock.now()), data), name, isAdmin)
    },
    stop: async () => {
      stopping.abort()
      await running
    },
  }
}

// The time is part of the key: the same problem may begin again.
const keyOf = ({ kind, chain, network, subject, create_time }: ListedEventRow): string =>
  `${kind}/${chain}/${network}/${subject}/${create_time.getTime()}`
