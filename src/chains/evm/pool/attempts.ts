import type { Clock } from '../../../lib/clock.ts'
import type { Timers } from '../transport/timers.ts'
import type { TransportOutcome } from '../transport/transport.ts'
import type { Asker } from './ask.ts'
import { createHedging } from './hedging.ts'
import type { Job } from './job.ts'
import type { Selection } from './select.ts'
import type { Upstream } from './upstream.ts'

/** Sends a job to a node. If the node takes unusually long, a second one is asked as well. */
export type Attempt = (job: Job, upstream: Upstream, hasOthers: boolean, now: number) => void

/** Makes attempts; `settled` is called once for each. */
export function createAttempts(options: {
  ask: Asker
  clock: Clock
  timers: Timers
  slowCallMs(): number
  choose(job: Job, now: number): Selection
  settled(job: Job, upstream: Upstream, outcome: TransportOutcome): void
}): Attempt {
  const { ask, clock, timers, choose, settled } = options
  const hedging = createHedging(options.slowCallMs)

  const attempt: Attempt = (job, upstream, hasOthers, now) => {
    const { request } = job
    job.tried.push(upstream)
    const left = job.deadline - now
    ask(
      upstream,
      {
        method: request.method,
        params: request.params,
        timeoutMs: hasOthers && request.idempotent ? left / 2 : left,
        idempotent: request.idempotent,
        isWhole: request.isWhole,
        isWrong: request.isWrong,
        longestString: request.longestString,
      },
      (outcome, ms) => settle(job, upstream, outcome, ms),
      now,
    )
    job.inFlight++
    job.strandedAt = undefined
    if (job.hedge || !hasOthers || !request.idempotent) return
    const afterMs = hedging.begin(request.method)
    if (afterMs < left) job.hedge = timers.after(afterMs, () => hedge(job))
  }

  const hedge = (job: Job): void => {
    if (job.isOver || job.inFlight !== 1) return
    const now = clock.now()
    const { chosen, hasOthers } = choose(job, now)
    if (chosen && hedging.take()) attempt(job, chosen, hasOthers, now)
  }

  const settle = (job: Job, upstream: Upstream, outcome: TransportOutcome, ms: number): void => {
    job.inFlight--
    if (!('failed' in outcome)) hedging.add(job.request.method, ms)
    settled(job, upstream, outcome)
  }

  return attempt
}
