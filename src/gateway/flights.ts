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

type Flight = { first: OnOutcome | undefined; others: OnOutcome[] | undefined }

/** Makes an empty board of flights. Its size is bounded by the calls that are being answered. */
export function createFlights(): Flights {
  const flights = new Map<string, Flight>()
  return {
    join(key, done) {
      const flight = flights.get(key)
      if (flight === undefined) return false
      if (flight.others) flight.others.push(done)
      else flight.others = [done]
      return true
    },
    open(key, done) {
      const flight: Flight = { first: done, others: undefined }
      flights.set(key, flight)
      return (outcome) => {
        const { first, others } = flight
        // A map that constantly loses and gains entries leaves dead tables behind that keep each other
        // alive with all that was in them: what is over must lead to nothing.
        flight.first = undefined
        flight.others = undefined
        flights.delete(key)
        first?.(outcome)
        if (others) for (const one of others) one(outcome)
      }
    },
    size: () => flights.size,
  }
}
