import type { Clock } from '../../../lib/clock.ts'
import type { Log } from '../../../lib/log.ts'
import type { Head } from '../pool/pool-types.ts'
import type { createLinkFetcher, Fetched } from './fetch-links.ts'
import type { Links } from './links.ts'

const firstRetryMs = 50
const longestRetryMs = 250
/** A head is given up when no node had its ancestors for so long, or none answered. */
const absentMs = 1_000
const unreachableMs = 5_000

type Failing = { hash: string; since: number; retryMs: number; isAbsent: boolean }

/**
 * Fetches the blocks between the chosen head and the chain, until the head is the tip or is given up.
 * The choice is made again after every fetch: a newer head may need other blocks, and the old branch
 * may have become the better one.
 */
export function createLinking(options: {
  fetcher: ReturnType<typeof createLinkFetcher>
  clock: Clock
  log: Log
  windowSize: number
  signal: AbortSignal
  links(): Links | undefined
  /** Changes with each reset: work that began before it must not continue. */
  epoch(): number
  /** Moves as far as that needs no node; the head that is left needs links. */
  advance(): Head | undefined
  /** Starts over at a head that cannot be linked. */
  restart(head: Head): void
  /** Called when there is nothing left to link. */
  ended(): void
}): {
  /** Starts; does nothing while it runs. */
  start(): void
  isRunning(): boolean
  /** A node has shown a head: ends the pause before the next attempt. */
  wake(): void
} {
  const { fetcher, clock, log, windowSize, signal, epoch, advance, restart } = options
  let isRunning = false
  let news = Promise.withResolvers<void>()

  const run = async () => {
    let failing: Failing | undefined
    const begun = epoch()
    try {
      for (;;) {
        news = Promise.withResolvers<void>()
        const head = advance()
        if (!head || signal.aborted) break
        const fetched = await fetchFor(options.links() as Links, head)
        if (epoch() !== begun) break
        if (fetched === 'found') {
          failing = undefined
          continue
        }
        const isAbsent = fetched === 'absent'
        if (failing?.hash !== head.hash)
          failing = { hash: head.hash, since: clock.now(), retryMs: firstRetryMs, isAbsent }
        else failing.isAbsent &&= isAbsent
        const limitMs = failing.isAbsent ? absentMs : unreachableMs
        if (fetched === 'lost' || clock.now() - failing.since >= limitMs) restart(head)
        // Ends early when a node shows a head, which may be the better choice.
        else await within({ clock, signal }, failing.retryMs, news.promise)
        failing.retryMs = Math.min(failing.retryMs * 2, longestRetryMs)
      }
    } catch (error) {
      if (!signal.aborted) log.error({ err: error }, 'linking of a head failed')
    } finally {
      isRunning = false
      options.ended()
    }
  }

  const fetchFor = async (own: Links, head: Head): Promise<Fetched | 'lost'> => {
    const plan = own.plan(head.hash)
    if (plan.kind === 'path') return 'found'
    if (plan.kind === 'missing') {
      // A single missing block is fetched by its hash: one round trip either way, and no node can confuse it.
      if (plan.child.number - own.tip().number > 2) await fetcher.gap(own, plan.child)
      const again = own.plan(head.hash)
      return again.kind === 'missing' ? await fetcher.parent(own, again.child) : 'found'
    }
    if (own.lowest().number === 0 || own.tip().number - own.lowest().number >= windowSize - 1)
      return 'lost'
    // Nodes that have dropped the old branch do not get it back.
    const fetched = await fetcher.below(own)
    return fetched === 'absent' ? 'lost' : fetched
  }

  return {
    start() {
      if (isRunning) return
      isRunning = true
      void run()
    },
    isRunning: () => isRunning,
    wake: () => news.resolve(),
  }
}

/** Waits for a promise, at most for a time. It never rejects, also when the chain is stopped. */
export async function within(
  { clock, signal }: { clock: Clock; signal: AbortSignal },
  ms: number,
  promise: Promise<void>,
): Promise<void> {
  const waited = new AbortController()
  const sleep = clock.sleep(ms, AbortSignal.any([signal, waited.signal]))
  await Promise.race([promise, sleep.catch(() => {})])
  // Else the timer would outlive its wait, one for every block.
  waited.abort()
}
