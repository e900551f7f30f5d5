import { clientGroup } from '../../lib/net/ip.ts'

/** Which bound is reached: that of the client, or that of all. */
export type Bound = 'client' | 'all'

/** Divides something scarce among clients: connections, or bytes in memory. */
export type Shares = {
  /**
   * Takes so much for a client; answers with the bound that does not allow it, and takes nothing then.
   * Without a client, only the bound of all counts.
   */
  take(client: string | undefined, amount: number): Bound | undefined
  giveBack(client: string | undefined, amount: number): void
  /** What is taken now, and how often each bound refused. */
  status(): { taken: number; refused: Readonly<Record<Bound, number>> }
}

/** Counts by client, IPv6 clients by their /64. There are never more counters than `all` allows. */
export function createShares(bounds: { perClient: number; all: number }): Shares {
  const taken = new Map<string, number>()
  const refused = { client: 0, all: 0 }
  let sum = 0
  return {
    take(client, amount) {
      const group = client === undefined ? undefined : clientGroup(client)
      const own = group === undefined ? 0 : (taken.get(group) ?? 0) + amount
      const bound =
        own > bounds.perClient ? 'client' : sum + amount > bounds.all ? 'all' : undefined
      if (bound) {
        refused[bound]++
        return bound
      }
      if (group !== undefined) taken.set(group, own)
      sum += amount
      return undefined
    },
    giveBack(client, amount) {
      sum -= amount
      if (client === undefined) return
      const group = clientGroup(client)
      const left = (taken.get(group) ?? 0) - amount
      if (left > 0) taken.set(group, left)
      else taken.delete(group)
    },
    status: () => ({ taken: sum, refused }),
  }
}
