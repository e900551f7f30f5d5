import type { Log } from '../../../lib/log.ts'
import type { Head } from './pool-types.ts'
import { isUsable, type Upstream } from './upstream.ts'

/** The heads of all nodes. */
export type Heads = {
  best(): Head | undefined
  /** Takes what a node shows as its head now. */
  show(upstream: Upstream, head: Head, now: number): void
  onHead(listener: (head: Head, upstream: string) => void): () => void
  /** Forgets every head. */
  reset(): void
}

// A service with many machines behind one address may show an older head for a moment. Not much longer:
// until then answers of blocks that are gone are still given.
const retractAfterMs = 3_000

/**
 * Keeps the highest head. It goes down only when the node that showed it has shown less for a while
 * and no other has it: then the chain itself was rolled back. That a node lags, or the one in front
 * dies, is not a reason.
 */
export function createHeads({
  upstreams,
  log,
}: {
  upstreams: readonly Upstream[]
  log: Log
}): Heads {
  const listeners = new Set<(head: Head, upstream: string) => void>()
  let best: Head | undefined
  let shownBy: Upstream | undefined
  let missingSince: number | undefined

  /** Whether the head went down. */
  const retract = (now: number): boolean => {
    const number = best?.number ?? 0
    const isHeld = upstreams.some((other) => isUsable(other) && (other.head?.number ?? 0) >= number)
    if (isHeld || !shownBy || !isUsable(shownBy)) {
      missingSince = undefined
      return false
    }
    missingSince ??= now
    if (now - missingSince < retractAfterMs) return false
    missingSince = undefined
    for (const other of upstreams.filter(isUsable))
      if (
        other.head &&
        (best === undefined || other.head.number > best.number || best.number === number)
      )
        [best, shownBy] = [other.head, other]
    log.warn({ from: number, to: best?.number }, 'the chain was rolled back')
    return true
  }

  return {
    best: () => best,
    show: (upstream, head, now) => {
      const isNew = upstream.head?.hash !== head.hash
      upstream.head = head
      const isHigher = head.number > (best?.number ?? -1)
      const isSwapped = shownBy === upstream && head.number === best?.number
      if (isHigher || isSwapped) [best, shownBy] = [head, upstream]
      // Listeners took the lower head for a node that lags.
      const isRetracted = retract(now)
      if (!isNew && !isRetracted) return
      for (const listener of listeners) {
        try {
          listener(head, upstream.name)
        } catch (error) {
          log.error({ err: error }, 'head listener failed')
        }
      }
    },
    onHead: (listener) => {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    reset: () => {
      best = shownBy = missingSince = undefined
    },
  }
}
