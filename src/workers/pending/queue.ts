/** Hashes of transactions that are to be fetched, each once. */
export type PendingQueue = {
  /** Takes a hash unless it was taken a moment ago: every node announces it. */
  add(hash: string, time: number): void
  /** Puts back what no node had yet; false when it was tried often enough. */
  retry(hash: string, entry: QueueEntry, now: number): boolean
  /** Puts back what could not be asked for, or not be stored: that is not a fault of the transaction. */
  postpone(hash: string, entry: QueueEntry, now: number): void
  /** Those that are due, the oldest first, out of the queue. */
  take(now: number, limit: number): [hash: string, entry: QueueEntry][]
  size(): number
  /** How many were left out because the queue was full, since this was last asked. */
  takeLost(): number
}

/** When a hash was first seen, and how often it was asked for. */
export type QueueEntry = { time: number; tries: number; due: number }

// Four attempts within about two seconds; after that no node has it and it counts as dropped.
const mostTries = 4
const firstPauseMs = 250
const postponedMs = 500

/** Makes an empty queue. */
export function createPendingQueue({
  maxSize = 20_000,
  maxRecent = 100_000,
  recentMs = 10_000,
}: {
  maxSize?: number
  maxRecent?: number
  recentMs?: number
} = {}): PendingQueue {
  const waiting = new Map<string, QueueEntry>()
  // Insertion order is age, so the first key is the oldest. `isRecent` deletes and sets a key to
  // renew its place.
  const recent = new Map<string, number>()
  let lost = 0

  const isRecent = (hash: string, time: number): boolean => {
    const last = recent.get(hash)
    if (last !== undefined && time - last < recentMs) return true
    recent.delete(hash)
    recent.set(hash, time)
    if (recent.size > maxRecent) recent.delete(recent.keys().next().value as string)
    return false
  }

  return {
    add(hash, time) {
      if (waiting.has(hash) || isRecent(hash, time)) return
      if (waiting.size >= maxSize) lost++
      else waiting.set(hash, { time, tries: 0, due: time })
    },
    retry(hash, { time, tries }, now) {
      if (tries + 1 >= mostTries || waiting.size >= maxSize) return false
      waiting.set(hash, { time, tries: tries + 1, due: now + (firstPauseMs << tries) })
      return true
    },
    postpone(hash, { time, tries }, now) {
      if (waiting.size >= maxSize) lost++
      else waiting.set(hash, { time, tries, due: now + postponedMs })
    },
    take(now, limit) {
      // A walk over the map, not a heap: the queue is bounded, and most entries are due at once.
      const taken: [string, QueueEntry][] = []
      for (const one of waiting) {
        if (taken.length === limit) break
        if (one[1].due <= now) taken.push(one)
      }
      for (const [hash] of taken) waiting.delete(hash)
      return taken
    },
    size: () => waiting.size,
    takeLost: () => {
      const count = lost
      lost = 0
      return count
    },
  }
}
