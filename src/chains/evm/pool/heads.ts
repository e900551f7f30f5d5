import type { Log } from '../../../lib/log.ts'
import type { Head } from './pool-types.ts'
import type { Upstream } from './upstream.ts'

/** The heads of all nodes. */
export type Heads = {
  /** The highest of the last heads of the nodes that are on the right chain; the first of equals. */
  highest(): Head | undefined
  /** Takes what a node shows as its head now. */
  show(upstream: Upstream, head: Head): void
  onHead(listener: (head: Head, upstream: string) => void): () => void
}

/** Reports what nodes show. Which of the heads counts, and when the chain is rolled back, is decided by `canonical`. */
export function createHeads({
  upstreams,
  log,
}: {
  upstreams: readonly Upstream[]
  log: Log
}): Heads {
  const listeners = new Set<(head: Head, upstream: string) => void>()

  return {
    highest: () => {
      let highest: Head | undefined
      for (const upstream of upstreams)
        if (!upstream.isWrongChain && (upstream.head?.number ?? -1) > (highest?.number ?? -1))
          highest = upstream.head
      return highest
    },
    show: (upstream, head) => {
      const isNew = upstream.head?.hash !== head.hash
      upstream.head = head
      if (!isNew) return
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
  }
}
