// Pending transactions, announced once however many nodes announce them, as far as the last `maxSeen` hashes reach. Nodes
// are asked only while a client listens. A transaction of a removed block is announced again.

import type { Pool } from '../../chains/evm/pool/pool-types.ts'
import type { FeedBlock } from './feed-block.ts'

/** Data that is fetched only while it is needed. */
export type Demand = {
  /** Until the returned function is called. */
  need(): () => void
  /** Whether what comes from now on is seen; otherwise a promise of that. */
  begun(): true | Promise<unknown>
}

/** The transactions that wait for a block, as all nodes together announce them. */
export type Pending = Demand & {
  /** Blocks left the chain: transactions that others do not hold are pending again. */
  removed(blocks: readonly FeedBlock[], added: readonly FeedBlock[]): void
  stop(): void
}

/**
 * Reports every transaction once, whichever nodes announce it. Also when it is in a block already: a
 * node that is asked again and again announces it after that, and no other announcement comes.
 */
export function createPending(options: {
  pool: Pool
  notify(hash: string): void
  /** Hashes that were reported, to avoid duplicates. */
  maxSeen?: number
}): Pending {
  const { pool, notify, maxSeen = 200_000 } = options
  const seen = new Set<string>()
  let users = 0
  let unsubscribe: (() => void) | undefined
  let begun: true | Promise<unknown> = true

  const remember = (hash: string): boolean => {
    const isNew = !seen.has(hash)
    // The latest stay longest, so that what is announced again and again is not forgotten.
    if (!isNew) seen.delete(hash)
    seen.add(hash)
    if (seen.size > maxSeen) seen.delete(seen.keys().next().value as string)
    return isNew
  }

  const close = () => {
    unsubscribe?.()
    unsubscribe = undefined
    seen.clear()
  }

  return {
    need() {
      users++
      if (!unsubscribe) {
        unsubscribe = pool.onPending((hash) => {
          if (remember(hash)) notify(hash)
        })
        const own = pool.pendingBegun().then(() => {
          if (begun === own) begun = true
        })
        begun = own
      }
      let isHeld = true
      return () => {
        if (!isHeld) return
        isHeld = false
        if (--users === 0) close()
      }
    },
    begun: () => begun,
    removed(blocks, added) {
      if (users === 0) return
      const again = new Set(blocks.flatMap(({ transactions }) => transactions))
      for (const { transactions } of added) for (const hash of transactions) again.delete(hash)
      for (const hash of again) {
        remember(hash)
        notify(hash)
      }
    },
    stop: close,
  }
}
