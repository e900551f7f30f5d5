// Reads the stored events of open streams and passes them on. One statement reads for all streams of the process, at
// the wake-up of the couriers or every few seconds. It uses storage. Each listener gets every event after its
// position once, in the order of the sequence.

import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import type { Db } from '../../storage/pg/database.ts'
import { listStreamRows, type StreamRow } from '../../storage/webhooks/streams.ts'

/** Passes stored events on to listeners. */
export type EventHub = {
  /**
   * Calls the listener with what follows a position, until it leaves. Undefined where the position is behind what was
   * already passed on: the caller reads on by itself and joins again.
   */
  join(webhook_id: string, position: number, listener: Listener): (() => void) | undefined
  /** Says that there may be new events. */
  wake(): void
  stop(): Promise<void>
}

type Listener = (rows: readonly StreamRow[]) => void

// `position` is the last sequence that was read for all; each listener has its own, because it may
// have joined later.
type Feed = { position: number; listeners: Map<Listener, number> }

/** How many events of a stream one statement reads. */
export const pageSize = 200
// A page of more bytes may have been cut by them: half of what is read at most, because the text may be shorter than what
// is stored.
const largePage = 524_288
// Wake-ups are a hint: a lost one costs this much time.
const pollMs = 5_000
// Events that come within this time share a statement.
const gatherMs = 20
const failedPauseMs = 1_000

/** Starts the hub. Without listeners it reads nothing. */
export function startEventHub({ db, clock, log }: { db: Db; clock: Clock; log: Log }): EventHub {
  const feeds = new Map<string, Feed>()
  const stopping = new AbortController()
  let isWoken = false
  let sleeping: AbortController | undefined

  const wake = () => {
    isWoken = true
    sleeping?.abort()
  }

  // Reads one page for all streams; returns whether a stream may have more than a page.
  const readPage = async (): Promise<boolean> => {
    // A copy, because streams join and leave while the statement runs.
    const asked = new Map(feeds)
    const wanted = [...asked].map(([webhook_id, { position }]) => ({ webhook_id, after: position }))
    const rows = await listStreamRows(db, wanted, pageSize)
    let isMore = false
    for (const [webhook_id, mine] of Map.groupBy(rows, (row) => row.webhook_id)) {
      const feed = asked.get(webhook_id)
      // All have left, and others may have joined at another position.
      if (!feed || feeds.get(webhook_id) !== feed) continue
      const bytes = mine.reduce((sum, { data }) => sum + data.length, 0)
      isMore ||= mine.length === pageSize || bytes > largePage / asked.size
      feed.position = mine.at(-1)!.sequence
      for (const [listener, position] of feed.listeners) {
        const own = mine.filter(({ sequence }) => sequence > position)
        if (own.length > 0) listener(own)
      }
    }
    return isMore
  }

  const run = async () => {
    while (!stopping.signal.aborted) {
      if (!isWoken) {
        sleeping = new AbortController()
        const signal = AbortSignal.any([sleeping.signal, stopping.signal])
        await clock.sleep(pollMs, signal).catch(() => {})
        sleeping = undefined
      }
      if (feeds.size === 0) {
        isWoken = false
        continue
      }
      await clock.sleep(gatherMs, stopping.signal).catch(() => {})
      isWoken = false
      try {
        while (!stopping.signal.aborted && feeds.size > 0 && (await readPage()));
      } catch (error) {
        log.warn({ err: error }, 'events could not be read')
        await clock.sleep(failedPauseMs, stopping.signal).catch(() => {})
        isWoken = true
      }
    }
  }
  const running = run()

  return {
    join(webhook_id, position, listener) {
      const feed = feeds.get(webhook_id) ?? { position, listeners: new Map() }
      // The hub does not go back: other listeners have these events already.
      if (position < feed.position) return undefined
      feeds.set(webhook_id, feed)
      feed.listeners.set(listener, position)
      // What was written since the caller has read is not announced again.
      wake()
      return () => {
        feed.listeners.delete(listener)
        if (feed.listeners.size === 0 && feeds.get(webhook_id) === feed) feeds.delete(webhook_id)
      }
    },
    wake,
    stop: async () => {
      stopping.abort()
      await running
    },
  }
}
