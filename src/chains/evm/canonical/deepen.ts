import type { Clock } from '../../../lib/clock.ts'
import type { createLinkFetcher } from './fetch-links.ts'
import type { Links } from './links.ts'

/** Answers wait for these blocks: when they cannot be fetched, that is not tried again at once. */
const retryMs = 5_000

/**
 * Fetches the blocks between the window and those that are final. They are needed when the chain could not
 * be linked, and when nodes differ below the window: without them a node that is still on another branch
 * could not be recognized by its answers.
 */
export function createDeepener(options: {
  fetcher: Pick<ReturnType<typeof createLinkFetcher>, 'lower'>
  clock: Clock
  signal: AbortSignal
  links(): Links | undefined
  final(): number
  /** Called when it is over. */
  ended(): void
}): { start(): void; isRunning(): boolean } {
  const { fetcher, clock, signal, links, final, ended } = options
  let running: Links | undefined
  let failedAt = Number.NEGATIVE_INFINITY

  const isWanted = (own: Links) =>
    links() === own && !signal.aborted && own.lowest().number > Math.max(final(), 0) + 1

  const run = async (own: Links) => {
    while (isWanted(own)) {
      const fetched = await fetcher.lower(own, Math.max(final() + 1, 0)).catch(() => 'failed')
      if (fetched === 'found') continue
      failedAt = clock.now()
      break
    }
    if (running !== own) return
    running = undefined
    ended()
  }

  return {
    start() {
      const own = links()
      if (!own || running === own || !isWanted(own)) return
      if (clock.now() - failedAt < retryMs) return
      running = own
      void run(own)
    },
    isRunning: () => running !== undefined,
  }
}
