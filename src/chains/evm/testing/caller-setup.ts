import { createAsker } from '../pool/ask.ts'
import { createCaller } from '../pool/caller.ts'
import type { PoolOutcome, PoolRequest } from '../pool/pool-types.ts'
import { createTimers } from '../transport/timers.ts'
import { createFakeClock } from './fake-clock.ts'
import { type FakeUpstream, result } from './fake-upstream.ts'

/** A caller on a fake clock, and what became of its calls. */
export const setUp = (
  upstreams: FakeUpstream[],
  { maxInFlight = 100, slowCallMs = Number.POSITIVE_INFINITY } = {},
) => {
  const clock = createFakeClock()
  const timers = createTimers(clock)
  const observed: string[] = []
  const ask = createAsker({
    clock,
    observe: (upstream, method, outcome) => observed.push(`${upstream} ${method} ${outcome}`),
    changed: () => caller.wake(),
  })
  const caller = createCaller({
    upstreams,
    ask,
    clock,
    timers,
    random: () => 0.5,
    bestHead: () => Math.max(...upstreams.map(({ head }) => head?.number ?? 0)),
    maxLag: () => 5,
    slowCallMs: () => slowCallMs,
    timeoutMs: 20_000,
    patienceMs: 2_000,
    maxInFlight,
  })
  const call = (request: Partial<PoolRequest> = {}) => {
    const outcomes: PoolOutcome[] = []
    caller.call({ method: 'eth_call', params: '[]', idempotent: true, ...request }, (outcome) =>
      outcomes.push(outcome),
    )
    return outcomes
  }
  return { clock, caller, call, observed }
}

/** Lets the caller learn how long a node takes. */
export const learn = async ({ call, clock }: ReturnType<typeof setUp>, upstream: FakeUpstream) => {
  for (let round = 0; round < 30; round++) {
    call()
    await clock.advance(20)
    upstream.answer(result(round))
  }
}
