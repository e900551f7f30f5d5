import type { Clock } from '../../../lib/clock.ts'
import type { Timers } from '../transport/timers.ts'
import type { TransportOutcome } from '../transport/transport.ts'
import type { Asker } from './ask.ts'
import { createAttempts } from './attempts.ts'
import { createJob, type Job } from './job.ts'
import { createJobQueue, type OfferOutcome } from './job-queue.ts'
import { guard, judge } from './judge.ts'
import { createPatience } from './patience.ts'
import type { PoolOutcome, PoolRequest } from './pool-types.ts'
import { select } from './select.ts'
import { isUsable, type Upstream } from './upstream.ts'

/** Carries calls through the pool. */
export type Caller = {
  call(request: PoolRequest, done: (outcome: PoolOutcome) => void): void
  /** The nodes have changed: what waits for one looks again. */
  wake(): void
  /** Calls that have no outcome yet. */
  busy(): number
  /** The nodes are connected from now on: calls wait for the first one that is usable. */
  begin(): void
  stop(): void
}

/** What the caller works with. */
export type CallerOptions = {
  upstreams: readonly Upstream[]
  ask: Asker
  clock: Clock
  timers: Timers
  random(): number
  bestHead(): number
  maxLag(): number
  /** The time after which a call counts as slow; Infinity where that is not known. */
  slowCallMs(): number
  timeoutMs: number
  /** How long a call waits for a node when there is none. */
  patienceMs: number
  maxInFlight: number
}

/** Asks one node after the other, or two at once, until one has answered. */
export function createCaller(options: CallerOptions): Caller {
  const { upstreams, clock, timers } = options
  const patience = createPatience(options)
  const waiting = new Set<Job>()
  const context = { now: 0, bestHead: 0, maxLag: options.maxLag(), random: options.random }
  let inFlight = 0
  let isStopped = false
  let isWaking = false

  const choose = (job: Job, now: number) => {
    context.now = now
    context.bestHead = options.bestHead()
    context.maxLag = options.maxLag()
    return select(upstreams, job.request, job.tried, context)
  }

  const finish = (job: Job, outcome: PoolOutcome): void => {
    if (job.isOver) return
    job.isOver = true
    inFlight--
    rest(job)
    if (job.hedge) timers.cancel(job.hedge)
    if (job.onAbort) job.request.signal?.removeEventListener('abort', job.onAbort)
    if (job.isNew) setImmediate(job.done, outcome)
    else guard(() => job.done(outcome))
  }

  const rest = (job: Job): void => {
    if (!job.wait) return
    timers.cancel(job.wait)
    job.wait = undefined
    waiting.delete(job)
  }

  const advance = (job: Job, now = clock.now()): void => {
    if (job.isOver) return
    rest(job)
    if (now >= job.deadline) {
      finish(job, job.useless ?? { failure: job.round > 0 ? job.failure : 'TIMEOUT' })
      return
    }
    const { chosen, hasOthers, waitMs, isBusy } = choose(job, now)
    if (chosen) attempt(job, chosen, hasOthers, now)
    else if (job.inFlight > 0) return
    else if (isBusy) queue(job, now)
    else if (job.useless) finish(job, job.useless)
    else pause(job, patience.pauseBefore(job, now, waitMs))
  }

  const queue = (job: Job, now: number): void => {
    job.wait = timers.after(job.deadline - now, () => advance(job))
    jobs.push(job)
  }

  const offer = (job: Job, now: number): OfferOutcome => {
    if (job.isOver) return 'taken'
    const { chosen, hasOthers, isBusy } = choose(job, now)
    if (!chosen && isBusy) return upstreams.some(hasRoom) ? 'refused' : 'no room'
    rest(job)
    if (chosen) attempt(job, chosen, hasOthers, now)
    else advance(job)
    return 'taken'
  }
  const jobs = createJobQueue({ clock, offer })

  const pause = (job: Job, pauseMs: number | undefined): void => {
    if (pauseMs === undefined) {
      finish(job, { failure: job.failure })
      return
    }
    job.wait = timers.after(pauseMs, () => {
      job.round++
      job.tried = []
      job.large = 0
      advance(job)
    })
    waiting.add(job)
  }

  const settled = (job: Job, upstream: Upstream, outcome: TransportOutcome): void => {
    if (!job.isOver) {
      const verdict = judge(job, upstream, outcome, clock.now)
      if (verdict === 'repeat') advance(job)
      else if (verdict === 'failed' || 'failed' in outcome) finish(job, { failure: job.failure })
      else finish(job, outcome)
    }
    jobs.drain()
  }
  const attempt = createAttempts({ ...options, choose, settled })

  return {
    call: (request, done) => {
      const { signal } = request
      const refusal = signal?.aborted ? 'ABORTED' : 'NO_UPSTREAM'
      if (isStopped || signal?.aborted || inFlight >= options.maxInFlight) {
        setImmediate(done, { failure: refusal })
        return
      }
      inFlight++
      const now = clock.now()
      const job = createJob(request, done, now + (request.timeoutMs ?? options.timeoutMs))
      if (signal) {
        job.onAbort = () => finish(job, { failure: 'ABORTED' })
        signal.addEventListener('abort', job.onAbort, { once: true })
      }
      if (jobs.isEmpty()) advance(job, now)
      else {
        queue(job, now)
        jobs.drain()
      }
      job.isNew = false
    },
    wake: () => {
      patience.look()
      jobs.drain()
      if (isWaking || waiting.size === 0) return
      isWaking = true
      setImmediate(() => {
        isWaking = false
        for (const job of [...waiting]) {
          if (job.tried.length === job.large) advance(job)
        }
      })
    },
    busy: () => inFlight,
    begin: patience.begin,
    stop: () => {
      isStopped = true
      for (const job of [...waiting]) finish(job, { failure: 'NO_UPSTREAM' })
      jobs.clear((job) => finish(job, { failure: 'NO_UPSTREAM' }))
    },
  }
}

const hasRoom = (upstream: Upstream): boolean =>
  isUsable(upstream) && upstream.inFlight < upstream.transport.capacity()
