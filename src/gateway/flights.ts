import type { PoolOutcome } from '../chains/upstream/pool-types.ts'

/** Told how a call to the nodes ended. */
export type OnOutcome = (outcome: PoolOutcome) => void

/** Calls on their way: identical ones are made once. */
export type Flights = {
  /** Waits for the call that is on its way under this key; false when there is none. */
  join(key: string, done: OnOutcome): boolean
  /** Opens a flight; the returned function ends it and tells all who joined. */
  open(key: string, done: OnOutcome): OnOutcome
  size(): number
}

/** Makes an empty board of flights. Its size is bounded by the calls that are being answered. */
export function createFlights(): Flights {
  const flights = new Map<string, OnOutcome | OnOutcome[]>()
  return {
    join(key, done) {
      const others = flights.get(key)
      if (others === undefined) return false
      if (typeof others === 'function') flights.set(key, [others, done])
      else others.push(done)
      return true
    },
    open(key, done) {
      flights.set(key, done)
      return (outcome) => {
        const waiting = flights.get(key)
        flights.delete(key)
        if (typeof waiting === 'function') waiting(outcome)
        else if (waiting) for (const one of waiting) one(outcome)
      }
    },
    size: () => flights.size,
  }
}
