/** The numbers of the processes that run, start or end. */
export type Slots = {
  /** A free number, not one that was free a moment ago while there are others: filters of its process may still be asked for. */
  take(): number
  /** The process of a number has ended. */
  release(slot: number): void
}

// A filter id has one byte for the slot, and zero is not used.
const last = 254
/** Of the service while it is one process, which lives beside the others until they serve. */
export const wholeSlot = 255

/** Numbers from 1 to 254, each of one process at a time. */
export function createSlots(): Slots {
  const used = new Set<number>()
  let latest = 0
  return {
    take: () => {
      if (used.size === last) throw new Error(`${last} processes run, start or end already.`)
      do latest = (latest % last) + 1
      while (used.has(latest))
      used.add(latest)
      return latest
    },
    release: (slot) => void used.delete(slot),
  }
}
