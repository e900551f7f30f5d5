import type { Clock } from '../../../lib/clock.ts'

/** A time limit that is running. */
export type Timer = { prev: Timer; next: Timer; rounds: number; fire: () => void }

/** Many time limits at the price of one. */
export type Timers = {
  /** Calls `fire` once, at least that many milliseconds from now. */
  after(ms: number, fire: () => void): Timer
  cancel(timer: Timer): void
  stop(): void
}

const tickMs = 5
const slotCount = 1024

// After a pause of the whole process (suspended, clock set) the answers that wait in the sockets
// are read before anything is declared late.
const longestJumpMs = 250

/**
 * A wheel of linked lists: starting and cancelling cost a few assignments, where a timer of the
 * machine for each of tens of thousands of calls per second would show in the bill.
 */
export function createTimers(clock: Clock): Timers {
  // Made for the first time limit: a network that is not used has none.
  let slots: Timer[] = []
  const stopped = new AbortController()
  let count = 0
  let current = 0
  let isTurning = false
  let turnedAt = 0
  let owed = 0

  const turn = async (): Promise<void> => {
    turnedAt = clock.now()
    owed = 0
    while (count > 0 && !stopped.signal.aborted) {
      await clock.sleep(tickMs, stopped.signal).catch(() => {})
      if (stopped.signal.aborted) break
      const now = clock.now()
      owed += Math.min(Math.max(now - turnedAt, 1), longestJumpMs)
      turnedAt = now
      for (; owed >= tickMs; owed -= tickMs) {
        current = (current + 1) % slotCount
        fireSlot(slots[current]!)
      }
    }
    isTurning = false
  }

  const fireSlot = (list: Timer): void => {
    const due: Timer[] = []
    for (let timer = list.next; timer !== list; timer = timer.next)
      if (timer.rounds-- === 0) due.push(timer)
    // They stay linked until their turn, because the first may cancel the others.
    for (const timer of due) {
      if (timer.next === timer) continue
      unlink(timer)
      count--
      timer.fire()
    }
  }

  return {
    after: (ms, fire) => {
      const sinceTurn = isTurning ? clock.now() - turnedAt : 0
      const ticks = Math.max(1, Math.ceil((ms + Math.min(sinceTurn, longestJumpMs)) / tickMs) + 1)
      if (slots.length === 0) slots = Array.from({ length: slotCount }, emptyList)
      const list = slots[(current + ticks) % slotCount]!
      const timer: Timer = {
        prev: list.prev,
        next: list,
        rounds: Math.floor((ticks - 1) / slotCount),
        fire,
      }
      list.prev.next = timer
      list.prev = timer
      count++
      if (!isTurning) {
        isTurning = true
        void turn()
      }
      return timer
    },
    cancel: (timer) => {
      if (timer.next === timer) return
      unlink(timer)
      count--
    },
    stop: () => stopped.abort(),
  }
}

function emptyList(): Timer {
  const list = { rounds: 0, fire() {} } as unknown as Timer
  list.prev = list
  list.next = list
  return list
}

// A timer that points at itself is over.
function unlink(timer: Timer): void {
  timer.prev.next = timer.next
  timer.next.prev = timer.prev
  timer.prev = timer
  timer.next = timer
}
