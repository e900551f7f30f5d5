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
        // Half of what is left, so that a node that hangs leaves time for another. A transaction has all of it: it is never
        // sent to a second node while the first may have accepted it.
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
    // The patience of a call counts from the last moment at which it had a node.
    job.strandedAt = undefined
    // One hedge per call: two slow nodes are a slow chain, and a third request would only add to its load.
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
    // Failures are often fast, and would make ordinary answers look slow.
    if (!('failed' in outcome)) hedging.add(job.request.method, ms)
    settled(job, upstream, outcome)
  }

  return attempt
}
