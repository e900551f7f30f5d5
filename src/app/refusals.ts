import { type Clock, toTimestamp } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import type { NetworkName } from '../storage/tracking/networks.ts'
import type { TrackerHealth } from '../workers/tracker/watch.ts'
import type { Place } from './chain-openers.ts'

/** Places that are not tracked because another place has the same nodes. */
export type Refusals = {
  add(place: Place, twin: { other: Place; identity: string }): void
  /** The place with the same nodes; undefined where it is not refused. */
  find(place: Place): Place | undefined
  list(): (NetworkName & { health: TrackerHealth })[]
  /** The place is removed or has other nodes: what is known of it and its twin does not hold any more. */
  forget(place: Place): void
}

/** Keeps the refused places. */
export function createRefusals({ clock, log }: { clock: Clock; log: Log }): Refusals {
  const refused = new Map<Place, { other: Place; health: TrackerHealth }>()
  return {
    add: (place, { other, identity }) => {
      const { chain, network } = place
      const problem = `the nodes are those of ${other.chain}/${other.network} (${identity}), so its transfers would be tracked twice: name other nodes, or set \`shared: true\` on the chain`
      const since = toTimestamp(clock.now())
      refused.set(place, { other, health: { health: 'failing', since, problem } })
      log.error({ chain, network, problem }, 'a network is not tracked')
    },
    find: (place) => refused.get(place)?.other,
    list: () =>
      [...refused].map(([{ chain, network }, { health }]) => ({ chain, network, health })),
    forget: (place) => {
      for (const [one, { other }] of refused)
        if (one === place || other === place) refused.delete(one)
    },
  }
}
