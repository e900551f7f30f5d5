import type { Clock } from '../../lib/clock.ts'
import { createPauses, type RateGate } from './rate-gate.ts'

const secondMs = 1_000
// While all calls are under way, their answers are waited for in steps.
const stepMs = 10

/**
 * A gate for plans that count calls in any second. A call counts from its start until a second after its
 * answer: the node received it in between, so that it never sees more than the limit in any second,
 * whatever the network does to the times. The price is one answer's time per second.
 */
export function createWindowGate(perSecond: number | undefined): RateGate {
  const pauses = createPauses()
  if (perSecond === undefined)
    return { ...pauses, waitMs: pauses.waitMs, take: () => {}, begin: () => {}, end: () => {} }
  const limit = Math.max(1, Math.floor(perSecond))
  const windowMs = perSecond < 1 ? secondMs / perSecond : secondMs
  const ended: number[] = []
  let open = 0
  const forget = (now: number): void => {
    while (ended.length > 0 && ended[0]! <= now - windowMs) ended.shift()
  }
  return {
    ...pauses,
    waitMs: (now) => {
      const pauseMs = pauses.waitMs(now)
      if (pauseMs > 0) return pauseMs
      forget(now)
      if (ended.length + open < limit) return 0
      return ended.length > 0 ? ended[0]! + windowMs - now : stepMs
    },
    take: (now) => void ended.push(now),
    begin: () => {
      open++
    },
    end: (now) => {
      open--
      ended.push(now)
    },
  }
}

/** Makes one call when the gate lets it through. */
export async function passGate<answer>(
  { gate, clock }: { gate: RateGate; clock: Clock },
  signal: AbortSignal,
  call: () => Promise<answer>,
): Promise<answer> {
  for (let waitMs = gate.waitMs(clock.now()); waitMs > 0; waitMs = gate.waitMs(clock.now()))
    await clock.sleep(waitMs, signal)
  gate.begin(clock.now())
  try {
    return await call()
  } finally {
    gate.end(clock.now())
  }
}
