import type { Clock } from '../../../lib/clock.ts'
import type { Log } from '../../../lib/log.ts'
import type { Head } from '../pool/pool-types.ts'
import type { createLinkFetcher } from './fetch-links.ts'
import type { Links } from './links.ts'

/** What a node shows as its head, and since when. */
export type NodeHead = { head: Head; time: number }

/** A node without a new head for so long has no say in what is disputed. */
const forgetAfterMs = 60_000

/** Finds out where nodes disagree. */
export function createDisputes(options: {
  fetcher: Pick<ReturnType<typeof createLinkFetcher>, 'parent'>
  clock: Clock
  log: Log
  windowSize: number
  signal: AbortSignal
  links(): Links | undefined
  final(): number
  heads(): Iterable<NodeHead>
  isLinking(): boolean
  /** Fetches the blocks below the window. */
  deepen(): void
}): {
  /** What is asked by number may differ above this height. */
  above(): number
  find(): void
} {
  const { fetcher, clock, log, signal, links, final, deepen } = options
  let disputedAbove = Number.POSITIVE_INFINITY
  let explored = ''

  const find = () => {
    const own = links()
    disputedAbove = Number.POSITIVE_INFINITY
    if (!own || options.isLinking()) return
    const horizon = clock.now() - forgetAfterMs
    for (const { head, time } of options.heads()) {
      if (time < horizon || head.number < own.lowest().number) continue
      if (own.at(head.number)?.hash === head.hash) continue
      // Beside the chain only: it becomes canonical by a plan, never by being known.
      own.put(head)
      const plan = own.plan(head.hash)
      const fork =
        plan.kind === 'path'
          ? (plan.removed[0]?.number ?? Number.POSITIVE_INFINITY) - 1
          : // Until the branch is linked, everything that is not final may differ.
            Math.min(final(), head.number - 1)
      disputedAbove = Math.min(disputedAbove, fork)
      if (plan.kind === 'lost') deepen()
      if (plan.kind === 'missing' && explored !== head.hash) void explore(own, head)
    }
  }

  /** Links a head beside the chain once, to learn where it left the chain. */
  const explore = async (own: Links, head: Head) => {
    // The last head that was explored is remembered: what no node has now is not asked for at each new head of the others.
    explored = head.hash
    try {
      for (let left = options.windowSize; left > 0 && links() === own && !signal.aborted; left--) {
        const plan = own.plan(head.hash)
        if (plan.kind !== 'missing') break
        if ((await fetcher.parent(own, plan.child)) !== 'found') return
      }
    } catch (error) {
      log.error({ err: error }, 'linking of a head failed')
    }
    find()
  }

  return { above: () => disputedAbove, find }
}
