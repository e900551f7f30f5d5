import type { PoolOutcome } from '../../chains/evm/pool/pool-types.ts'

/** Called with the outcome of a call to the nodes. */
export type OnOutcome = (outcome: PoolOutcome) => void

/** Calls on their way: identical ones are made once. */
export type Flights = {
  /** Waits for the call that is on its way under this key; false when there is none. */
  join(key: string, done: OnOutcome): boolean
  /** Opens a flight; the returned function ends it and calls all waiting callbacks. */
  open(key: string, done: OnOutcome): OnOutcome
  size(): number
}

type Flight = {
  key: string
  hash: number
  first: OnOutcome | undefined
  others: OnOutcome[] | undefined
  next: Flight | undefined
}

// A power of two, so that a mask takes the place of a division.
const lists = 4_096
/** Keys made to fall into one list are made more than once instead of being looked for for ever. */
const longestList = 32
/** Longer keys are hashed by both ends only. */
const hashedChars = 512
/** Calls with longer keys are made one by one: comparing such a key makes one text of its pieces first. */
const maxKeyLength = 65_536

/**
 * Makes an empty board of flights. Its size is bounded by the calls that are being answered. No Map: one
 * that constantly loses and gains entries leaves dead tables behind that keep each other alive with all
 * that was in them, which was a fifth of what each collection of the young had to copy.
 */
export function createFlights(): Flights {
  const board: (Flight | undefined)[] = new Array(lists).fill(undefined)
  let size = 0

  // A call that joins no other opens its own: its key is hashed once.
  let lastKey: string | undefined
  let lastHash = 0
  const listOf = (key: string): number => {
    if (key !== lastKey) {
      lastHash = hashOf(key)
      lastKey = key
    }
    return lastHash
  }

  const find = (key: string, hash: number): Flight | undefined => {
    let flight = board[hash]
    while (flight !== undefined && flight.key !== key) flight = flight.next
    return flight
  }

  const remove = (flight: Flight) => {
    size--
    let before = board[flight.hash]
    if (before === flight) board[flight.hash] = flight.next
    else {
      while (before !== undefined && before.next !== flight) before = before.next
      if (before) before.next = flight.next
    }
    // What is over must lead to nothing, wherever it is still known.
    flight.next = undefined
    flight.first = undefined
    flight.others = undefined
  }

  const isFull = (hash: number): boolean => {
    let length = 0
    for (let flight = board[hash]; flight !== undefined; flight = flight.next) length++
    return length >= longestList
  }

  return {
    join(key, done) {
      if (key.length > maxKeyLength) return false
      const flight = find(key, listOf(key))
      if (flight === undefined) return false
      if (flight.others) flight.others.push(done)
      else flight.others = [done]
      return true
    },
    open(key, done) {
      if (key.length > maxKeyLength) return done
      const hash = listOf(key)
      // A long key is not held for longer than its call.
      lastKey = undefined
      if (isFull(hash)) return done
      const flight: Flight = { key, hash, first: done, others: undefined, next: board[hash] }
      board[hash] = flight
      size++
      return (outcome) => {
        const { first, others } = flight
        if (first === undefined) return
        remove(flight)
        first(outcome)
        if (others) for (const one of others) one(outcome)
      }
    },
    size: () => size,
  }
}

function hashOf(key: string): number {
  const { length } = key
  let value = length
  const head = Math.min(length, hashedChars)
  for (let at = 0; at < head; at++) value = Math.imul(value ^ key.charCodeAt(at), 0x01000193)
  for (let at = Math.max(head, length - hashedChars); at < length; at++)
    value = Math.imul(value ^ key.charCodeAt(at), 0x01000193)
  return (value ^ (value >>> 16)) & (lists - 1)
}
