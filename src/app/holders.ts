import type { Ids } from '../lib/ids.ts'

/** The holders of leases of this process, so that metrics show its leases and not those of others. */
export type Holders = { newHolder(): string; isOwn(holder: string): boolean }

/** Makes an empty list. A network that is replaced gets a new holder, so that it waits for the lease of the old one. */
export function createHolders(ids: Ids): Holders {
  const own = new Set<string>()
  return {
    newHolder: () => {
      const holder = ids.uuid()
      own.add(holder)
      return holder
    },
    isOwn: (holder) => own.has(holder),
  }
}
