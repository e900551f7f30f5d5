import type { Clock } from '../../../lib/clock.ts'
import type { PoolCall } from './pool-call.ts'

/** What became of an offer: the call was taken, this call cannot be taken now, or no node has room. */
export type OfferOutcome = 'taken' | 'refused' | 'no room'

/** Calls that wait until a node has room. */
export type CallQueue = {
  push(call: PoolCall): void
  isEmpty(): boolean
  /** Offers the calls, oldest first. */
  drain(): void
  /** Removes all calls. */
  clear(remove: (call: PoolCall) => void): void
}

/** Creates the queue. A call that a node has failed goes before the others: it has waited once already. */
export function createCallQueue(options: {
  clock: Clock
  offer(call: PoolCall, now: number): OfferOutcome
}): CallQueue {
  const backlog = createBacklog<PoolCall>()
  const repeats = createBacklog<PoolCall>()
  let isDraining = false
  let isDrainDue = false
  const isEmpty = () => backlog.size() + repeats.size() === 0

  // A caller may call again from inside of its callback. That call waits for the next turn of the event loop:
  // otherwise thousands of them would nest on the stack.
  const drain = (): void => {
    if (isEmpty()) return
    if (isDraining) {
      if (!isDrainDue) setImmediate(drainAgain)
      isDrainDue = true
      return
    }
    isDraining = true
    try {
      const now = options.clock.now()
      const offer = (call: PoolCall) => options.offer(call, now)
      repeats.drain(offer)
      backlog.drain(offer)
    } finally {
      isDraining = false
    }
  }
  const drainAgain = (): void => {
    isDrainDue = false
    drain()
  }

  return {
    push: (call) => (call.isNew ? backlog : repeats).push(call),
    isEmpty,
    drain,
    clear: (remove) => {
      const take = (call: PoolCall) => {
        remove(call)
        return 'taken' as const
      }
      repeats.drain(take)
      backlog.drain(take)
    },
  }
}

/** Calls that wait for a node to have room, the oldest first. */
export type Backlog<call> = {
  size(): number
  push(call: call): void
  /** Offers the calls in turn until there is no room; one that is taken leaves. */
  drain(offer: (call: call) => 'taken' | 'refused' | 'no room'): void
}

// Calls with demands of their own must not block all others, nor cost a look at all of them.
const maxRefusals = 64

/** A queue that costs the same however long it is. */
export function createBacklog<call>(): Backlog<call> {
  let calls: (call | undefined)[] = []
  let first = 0
  let size = 0
  return {
    size: () => size,
    push: (call) => {
      calls.push(call)
      size++
    },
    drain: (offer) => {
      let refusals = 0
      // What is pushed meanwhile has its turn the next time.
      const end = calls.length
      for (let at = first; at < end && refusals < maxRefusals; at++) {
        const call = calls[at]
        if (call === undefined) continue
        const answer = offer(call)
        if (answer === 'no room') break
        if (answer === 'refused') refusals++
        else {
          calls[at] = undefined
          size--
        }
      }
      while (first < calls.length && calls[first] === undefined) first++
      if (first > 1_000 && first * 2 > calls.length) {
        calls = calls.slice(first)
        first = 0
      }
    },
  }
}
