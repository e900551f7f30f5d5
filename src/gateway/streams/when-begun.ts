import type { Feed } from './feed.ts'
import type { Demand } from './pending.ts'

/**
 * Continues, at once where that is possible, when all required feeds have begun: a client that is answered
 * after that misses nothing that comes later (spec 6.2). False when no node can be reached.
 */
export function whenBegun(
  { feed, pending }: { feed: Feed; pending?: Demand },
  go: (isBegun: boolean) => void,
): void {
  const begun = feed.begun()
  const watched = pending ? pending.begun() : true
  if (begun === true && watched === true) go(true)
  else
    Promise.all([begun, watched]).then(
      ([isBegun]) => go(isBegun),
      () => go(false),
    )
}
