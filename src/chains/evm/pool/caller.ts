// The life of a call: choose a node, attempt, judge the outcome, and then finish, try the next node, wait for a free
// slot, or pause. `select.ts` chooses, `attempts.ts` sends and hedges, `judge.ts` decides what an outcome means, and
// `patience.ts` how long a call waits while there is no node. Steps are callbacks, not promises: every call of the
// gateway passes here.

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
  // One object for all choices: it is read within `select` only, so none has to be made for each call.
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
    // A caller never gets its outcome before `call` has returned.
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
    // The order matters. A free node is used at once. While an attempt is under way, its outcome decides. Busy nodes get
    // the call as soon as they have a free slot. An answer without use, such as null for a block that a node may lack, is
    // better than a failure once every node was asked.
    const { chosen, hasOthers, waitMs, isBusy } = choose(job, now)
    if (chosen) attempt(job, chosen, hasOthers, now)
    else if (job.inFlight > 0) return
    else if (isBusy) queue(job, now)
    else if (job.useless) finish(job, job.useless)
    else pause(job, patience.pauseBefore(job, now, waitMs))
  }

  /** Waits for a free slot of a node, up to the deadline of the call. */
  const queue = (job: Job, now: number): void => {
    job.wait = timers.after(job.deadline - now, () => advance(job))
    jobs.push(job)
  }

  /**
   * The queue offers its first job. `refused` means that other jobs may have a place where this one has none: a node with
   * a free slot may lack what this call needs. `no room` ends the round.
   */
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

  /** All nodes were tried. After the pause each of them may be tried again; without one the call has failed. */
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
      // The bound protects memory: with every node unresponsive each call lives for its whole time limit.
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
      // A new call does not overtake those that wait.
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
          // Those that no node has failed in this round. The others pause because of failures, and their pause ends by itself.
          if (job.tried.length === job.large) advance(job)
        }
      })
    },
    busy: () => inFlight,
    begin: patience.begin,
    stop: () => {
      isStopped = true
      // Calls under way are ended by the transports, which stop next.
      for (const job of [...waiting]) finish(job, { failure: 'NO_UPSTREAM' })
      jobs.clear((job) => finish(job, { failure: 'NO_UPSTREAM' }))
    },
  }
}

const hasRoom = (upstream: Upstream): boolean =>
  isUsable(upstream) && upstream.inFlight < upstream.transport.capacity()
