import { type Entry, type HttpExchanges, isQuick } from './http-exchanges.ts'

/** Calls that wait for their turn at one node. */
export type HttpQueue = {
  push(entry: Entry): void
  /** Sends these again, each alone. */
  pushSingle(entries: readonly Entry[]): void
  /** Starts what waits at the end of this turn of the event loop, if anything does. */
  wake(): void
  entries(): Entry[]
  batchLimit(): number
  /** The node takes batches of so many calls; 1 for none. */
  setBatchLimit(limit: number): void
  /** How many calls can be under way. */
  capacity(): number
}

const maxConnections = 64
// While all of them are under way the calls wait and make the next batch larger.
const maxBatchExchanges = 16
const maxBatchBytes = 256 * 1024
// A large or slow call would make its neighbours in a batch wait.
const maxJoinedBytes = 32 * 1024

/** Makes the queue. Quick calls of one turn are joined to a batch where the node takes batches. */
export function createHttpQueue(
  exchanges: () => Pick<HttpExchanges, 'start' | 'size' | 'batches' | 'window'>,
): HttpQueue {
  const urgent: Entry[] = []
  const joined: Entry[] = []
  const single: Entry[] = []
  let batchLimit = 1
  let isFlushing = false

  const scheduleFlush = (): void => {
    if (isFlushing) return
    isFlushing = true
    // At the end of the turn, so that calls made in one turn form one batch.
    setImmediate(flush)
  }

  const flush = (): void => {
    isFlushing = false
    const { start, size, batches } = exchanges()
    while (urgent.length > 0) start([urgent.shift()!], false)
    while (single.length > 0 && size() < maxConnections) {
      const entry = single.shift()!
      if (!entry.isOver) start([entry], false)
    }
    while (joined.length > 0 && batches() < maxBatchExchanges) {
      const batch = takeBatch()
      if (batch.length > 0) start(batch, true)
    }
  }

  const takeBatch = (): Entry[] => {
    const batch: Entry[] = []
    let bytes = 0
    let taken = 0
    for (const entry of joined) {
      if (batch.length === batchLimit || bytes > maxBatchBytes) break
      taken++
      if (entry.isOver) continue
      bytes += entry.text.length
      batch.push(entry)
    }
    joined.splice(0, taken)
    return batch
  }

  return {
    push: (entry) => {
      const { call, text } = entry
      const isJoined = batchLimit > 1 && text.length <= maxJoinedBytes && isQuick(call)
      if (call.isUrgent) urgent.push(entry)
      else if (isJoined) joined.push(entry)
      else single.push(entry)
      scheduleFlush()
    },
    pushSingle: (entries) => {
      for (const entry of entries) {
        entry.exchange = undefined
        if (!entry.isOver) single.push(entry)
      }
      scheduleFlush()
    },
    wake: () => {
      if (joined.length > 0 || single.length > 0) scheduleFlush()
    },
    entries: () => [...joined, ...single],
    batchLimit: () => batchLimit,
    setBatchLimit: (limit) => {
      batchLimit = limit
    },
    capacity: () =>
      Math.min(
        exchanges().window(),
        batchLimit > 1 ? maxBatchExchanges * batchLimit : 2 * maxConnections,
      ),
  }
}
