// Publishes the events of sinks to their brokers. It uses storage, the rules for addresses of webhooks, and the
// clients of the brokers, which are loaded when the first sink needs them. It guarantees that every event is
// published at least once, in the order of the sequence within a wallet; that the position moves only after the
// broker has acknowledged, or has refused an event for its size: then the event is named and set aside; and that an
// unreachable, slow or full broker delays only its own sink.

import { openCredentials, type SinkSettings } from '../../domain/sinks/settings.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Ids } from '../../lib/ids.ts'
import type { Log } from '../../lib/log.ts'
import type { EndpointRules } from '../../lib/net/endpoint.ts'
import type { Sealer } from '../../storage/access/seal.ts'
import type { Db } from '../../storage/pg/database.ts'
import { wakeCouriers } from '../../storage/webhooks/notifications.ts'
import {
  advanceSink,
  type ClaimedSink,
  claimSinks,
  clearSinkError,
  disableSink,
  findNextSinkTime,
  hasSinks,
  pauseSink,
  postponeSink,
  releaseSink,
  removeEvents,
  renewSinks,
  setEventAside,
} from '../../storage/webhooks/sinks.ts'
import { listStreamRows } from '../../storage/webhooks/streams.ts'
import { toCloudEvents } from './cloud-event.ts'
import { createConnections } from './connections.ts'
import { createAddressGuard, TooLargeError } from './publisher.ts'

/** How to build the publishing of sinks. */
export type SinksOptions = {
  db: Db
  clock: Clock
  ids: Ids
  sealer: Sealer
  log: Log
  endpoints: Pick<EndpointRules, 'reachable'>
  /** For a connection, and for the acknowledgement of one message or request. */
  timeoutMs?: number
  /** The first pause after a failure; it doubles up to `longestPauseMs`. */
  firstPauseMs?: number
  longestPauseMs?: number
  /** The longest time between two looks at the database, independent of wake-ups. */
  pollMs?: number
}

/** Publishes events until it is stopped. */
export type Sinks = {
  /** Says that there may be something to publish. */
  wake(): void
  status(): { published: number; failed: number; set_aside: number; active: number }
  stop(): Promise<void>
}

// Sinks that one process publishes for at once. Those that failed last time have half of the places, so that
// unreachable brokers do not delay others.
const mostActive = 64
const mostFailing = mostActive / 2
// Events in one page: all of it is acknowledged before the position moves.
const pageSize = 100
// After so many pages others may have the place.
const pagesPerClaim = 50
// A process that was killed is replaced after this time.
const claimMs = 4_000
const renewMs = 1_200
const removedAtOnce = 1_000
const gatherMs = 20
const failedPauseMs = 1_000
// Events that a sink has yet to publish are kept. Where they were deleted nevertheless, it is not looked at all the time.
const emptyPauseMs = 5_000
// A sink that fails for this long is disabled, like a webhook (docs/decisions/webhooks.md).
const patienceMs = 5 * 86_400_000
const longestErrorText = 500

type Active = {
  sink: ClaimedSink
  isFailing: boolean
  /** Aborted when the claim has passed to another process. */
  lost: AbortController
  running: Promise<void>
}

/** Starts publishing; any number of processes may do so. */
export function startSinks(options: SinksOptions): Sinks {
  const { db, clock, log, endpoints, timeoutMs = 10_000, pollMs = 2_000 } = options
  const stopping = new AbortController()
  const connections = createConnections({
    guard: createAddressGuard(endpoints),
    ...{ timeoutMs, clock, log },
  })
  const active = new Map<string, Active>()
  const seen = { published: 0, failed: 0, set_aside: 0 }
  const publish = createPublish({
    ...{ ...options, timeoutMs, connections, seen, stopped: stopping.signal },
  })
  let isWoken = true
  let sleeping: AbortController | undefined

  const wake = (): void => {
    isWoken = true
    sleeping?.abort()
  }

  const start = (sink: ClaimedSink): void => {
    const lost = new AbortController()
    const running = publish(sink, lost.signal)
      .catch((error: unknown) => log.warn({ err: error }, 'the state of a sink was not stored'))
      .finally(() => {
        active.delete(sink.webhook_id)
        wake()
      })
    active.set(sink.webhook_id, { sink, isFailing: sink.failure_count > 0, lost, running })
  }

  /** Keeps the claims of this process, and stops what another process has taken over. */
  const renew = async (): Promise<void> => {
    let renewed = clock.now()
    while (!stopping.signal.aborted) {
      await clock.sleep(renewMs, stopping.signal).catch(() => {})
      const mine = [...active.values()]
      if (mine.length === 0 || stopping.signal.aborted) {
        renewed = clock.now()
        continue
      }
      const claims = mine.map(({ sink }) => sink)
      const kept = await renewSinks(db, claims, claimMs).catch((error: unknown) => {
        log.warn({ err: error }, 'renewing the claims of sinks failed, will retry')
        return undefined
      })
      if (kept) renewed = clock.now()
      // While the database cannot be reached nothing is known: the claim counts as lost when its time is over.
      const isExpired = clock.now() - renewed > claimMs
      for (const { sink, lost } of mine)
        if (isExpired || kept?.has(sink.webhook_id) === false) lost.abort(new Error('claim lost'))
    }
  }

  /** Starts what is due, and says when to look again. */
  const collect = async (): Promise<number> => {
    if (!(await hasSinks(db))) return pollMs
    const failing = [...active.values()].filter(({ isFailing }) => isFailing).length
    const room = mostActive - active.size
    const tries = [
      { isFailing: false, limit: room },
      { isFailing: true, limit: Math.min(room, mostFailing - failing) },
    ]
    for (const { isFailing, limit } of tries) {
      const free = Math.min(limit, mostActive - active.size)
      if (free <= 0) continue
      // Those of this process are held by their claims.
      for (const sink of await claimSinks(db, { limit: free, claimMs, isFailing })) start(sink)
    }
    if (await removeEvents(db, removedAtOnce)) return 0
    const next = await findNextSinkTime(db)
    return Math.min(pollMs, Math.max(gatherMs, next?.waitMs ?? pollMs))
  }

  const run = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      isWoken = false
      const waitMs = await collect().catch((error: unknown) => {
        log.warn({ err: error, retry_ms: failedPauseMs }, 'claiming sinks failed, will retry')
        isWoken = false
        return failedPauseMs
      })
      connections.closeIdle()
      if (isWoken || stopping.signal.aborted) {
        // Wake-ups that come together share a look.
        await clock.sleep(gatherMs, stopping.signal).catch(() => {})
        continue
      }
      sleeping = new AbortController()
      const signal = AbortSignal.any([sleeping.signal, stopping.signal])
      await clock.sleep(waitMs, signal).catch(() => {})
      sleeping = undefined
    }
  }
  const running = Promise.all([run(), renew()])

  return {
    wake,
    status: () => ({ ...seen, active: active.size }),
    stop: async () => {
      stopping.abort()
      await running
      const ending = [...active.values()].map((one) => one.running)
      await Promise.all(ending)
      // Another process continues at once.
      if (ending.length > 0) await wakeCouriers(db).catch(() => {})
      await connections.stop()
    },
  }
}

/** Publishes the events of one sink for as long as its claim allows, and stores how far it came. */
function createPublish(
  options: SinksOptions & {
    timeoutMs: number
    connections: ReturnType<typeof createConnections>
    seen: { published: number; failed: number; set_aside: number }
    stopped: AbortSignal
  },
): (sink: ClaimedSink, lost: AbortSignal) => Promise<void> {
  const { db, clock, ids, sealer, log, timeoutMs, connections, seen, stopped } = options
  const { firstPauseMs = 500, longestPauseMs = 300_000 } = options

  /** Publishes a page and gives the position after it; undefined where there is nothing left to do. */
  const publishPage = async (
    sink: ClaimedSink,
    { position, size, lost }: { position: number; size: number; lost: AbortSignal },
  ): Promise<number | undefined> => {
    const { webhook_id, organization_id, chain, network } = sink
    const rows = await listStreamRows(db, [{ webhook_id, after: position }], size)
    const last = rows.at(-1)?.sequence
    if (last === undefined) return undefined
    // Opened here and kept by `connections`: the credentials are unsealed once per connection, not per page.
    const source = { organization_id, chain, network }
    const publisher = await connections.get(sink, () => ({
      source,
      settings: sink.settings as SinkSettings,
      credentials: openCredentials(sealer, webhook_id, sink.secret_sealed),
    }))
    const limit = AbortSignal.timeout(2 * timeoutMs)
    await publisher.publish(
      rows.flatMap((row) => toCloudEvents(source, row)),
      AbortSignal.any([stopped, lost, limit]),
    )
    // False when the claim has passed to another process: the position of that one counts, so it publishes this page once
    // more.
    if (!(await advanceSink(db, sink, { position: last, now: new Date(clock.now()) })))
      return undefined
    seen.published += rows.length
    return last
  }

  const publish = async (sink: ClaimedSink, lost: AbortSignal): Promise<void> => {
    let { position } = sink
    let isFailing = sink.failing_since !== null
    // Fewer after failures: a slow broker may not acknowledge a whole page within the time limit.
    let size = Math.max(1, pageSize >> (2 * Math.min(sink.failure_count, 4)))
    try {
      for (let page = 0; page < pagesPerClaim && !stopped.aborted; page++) {
        const begun = clock.now()
        const next = await publishPage(sink, { position, size, lost }).catch((error: unknown) => {
          if (error instanceof TooLargeError) return error
          throw error
        })
        if (next === undefined) {
          if (page === 0) return await pauseSink(db, sink, emptyPauseMs)
          break
        }
        if (next instanceof TooLargeError) {
          // One by one, until the page is the event that is too large.
          if (size > 1) size = 1
          else position = await setAside(sink, position, next)
          continue
        }
        position = next
        if (isFailing) await clearSinkError(db, sink.webhook_id)
        isFailing = false
        const isSlow = clock.now() - begun > timeoutMs / 2
        size = isSlow ? Math.max(1, size >> 1) : Math.min(pageSize, size * 2)
      }
      await releaseSink(db, sink)
    } catch (error) {
      // A connection that has failed may have a message half sent: the next attempt has a new one.
      await connections.drop(sink.webhook_id)
      if (lost.aborted) return
      if (!stopped.aborted) return await postpone(sink, error)
      await releaseSink(db, sink).catch(() => {})
    }
  }

  /** Passes over the event after a position. */
  const setAside = async (
    sink: ClaimedSink,
    position: number,
    error: TooLargeError,
  ): Promise<number> => {
    const { webhook_id } = sink
    const [row] = await listStreamRows(db, [{ webhook_id, after: position }], 1)
    if (!row) return position
    const { sequence, webhook_history_id } = row
    const detail = `Event ${sequence} (${webhook_history_id}) was set aside: ${error.message}`
    const now = new Date(clock.now())
    if (!(await setEventAside(db, sink, { sequence, detail, now }))) return position
    seen.set_aside++
    log.warn(
      { sink_id: webhook_id, sequence, webhook_history_id, err: error },
      'an event is too large for the broker and was set aside',
    )
    return sequence
  }

  const postpone = async (sink: ClaimedSink, error: unknown): Promise<void> => {
    const { webhook_id, failure_count } = sink
    seen.failed++
    const random = ids.bytes(4).readUInt32BE() / 0xffff_ffff
    const pauseMs =
      Math.min(firstPauseMs * 2 ** Math.min(failure_count, 20), longestPauseMs) *
      // Sinks of one broker would otherwise return to it in the same moment.
      (0.8 + 0.4 * random)
    const now = new Date(clock.now())
    log.warn({ err: error, sink_id: webhook_id, retry_ms: pauseMs }, 'publishing to a sink failed')
    const since = await postponeSink(db, sink, { error: textOf(error), pauseMs, now })
    if (since && now.getTime() - since.getTime() >= patienceMs)
      await disableSink(db, webhook_id, { reason: 'Every attempt failed for 5 days.', now })
  }

  return publish
}

const textOf = (error: unknown): string => {
  const text = error instanceof Error ? error.message : String(error)
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause.message : ''
  return (cause && cause !== text ? `${text}: ${cause}` : text).slice(0, longestErrorText)
}
