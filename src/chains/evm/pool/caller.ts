import type { Clock } from '../../../lib/clock.ts'
import type { Timers } from '../transport/timers.ts'
import { isUnsent, type TransportFailure, type TransportOutcome } from '../transport/transport.ts'
import type { Asker } from './ask.ts'
import { createHedging } from './hedging.ts'
import { createJob, type Job, keepUseless } from './job.ts'
import { createJobQueue, type OfferOutcome } from './job-queue.ts'
import { isSurelyUnknownMethod, meaningOf } from './node-error.ts'
import type { PoolOutcome, PoolRequest, RpcReply } from './pool-types.ts'
import { canServe, select } from './select.ts'
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

const maxRounds = 5
const roundPauseMs = 50
// A node said to lack a method is asked for it last, until then.
const lackingMs = 600_000
const maxLacking = 256

/** Asks one node after the other, or two at once, until one has answered. */
export function createCaller(options: CallerOptions): Caller {
  const { upstreams, ask, clock, timers } = options
  const hedging = createHedging(options.slowCallMs)
  const waiting = new Set<Job>()
  const context = { now: 0, bestHead: 0, maxLag: options.maxLag(), random: options.random }
  let inFlight = 0
  let usableAt = clock.now()
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

  const advance = (job: Job): void => {
    if (job.isOver) return
    rest(job)
    const now = clock.now()
    if (now >= job.deadline) {
      finish(job, job.useless ?? { failure: job.round > 0 ? job.failure : 'TIMEOUT' })
      return
    }
    const { chosen, hasOthers, waitMs, isBusy } = choose(job, now)
    if (chosen) attempt(job, chosen, hasOthers, now)
    else if (job.inFlight > 0) return
    else if (isBusy) queue(job, now)
    else if (job.useless) finish(job, job.useless)
    else pause(job, pauseBefore(job, now, waitMs))
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

  /** How long to wait before all nodes are asked again; undefined when there is no point in it. */
  const pauseBefore = (job: Job, now: number, waitMs: number): number | undefined => {
    const isLarge = job.large > 0 && job.large === job.tried.length
    // Once more, and only if there is a node that could not be asked: it may have a proper answer.
    if (isLarge && (job.round > 0 || !hasUnasked(job))) return undefined
    if (upstreams.some(isUsable)) usableAt = now
    if (now + waitMs < job.deadline) return waitMs
    const isHopeless =
      job.round >= maxRounds || now - usableAt > options.patienceMs || isBeyondAll(job.request)
    job.strandedAt ??= now
    const patience = Math.min(job.deadline, job.strandedAt + options.patienceMs) - now
    if (isHopeless || patience <= 0) return undefined
    // Nodes that were asked and failed are asked again soon; unreachable nodes will wake us.
    return job.tried.length > 0 && !isLarge
      ? Math.min(roundPauseMs << job.round, patience)
      : patience
  }

  const hasUnasked = ({ request, tried }: Job): boolean =>
    upstreams.some((one) => !one.isWrongChain && canServe(one, request) && !tried.includes(one))

  const isBeyondAll = ({ needs }: PoolRequest): boolean =>
    needs !== undefined &&
    upstreams.every((one) => !one.capabilities.has(needs) && (one.isExplored || one.isWrongChain))

  const attempt = (job: Job, upstream: Upstream, hasOthers: boolean, now: number): void => {
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
        isWrong: request.isWrong,
        longestString: request.longestString,
      },
      (outcome, ms) => settle(job, upstream, outcome, ms),
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
    if (!job.isOver) {
      if ('failed' in outcome) fail(job, outcome)
      else judge(job, upstream, outcome)
    }
    jobs.drain()
  }

  const judge = (job: Job, upstream: Upstream, outcome: RpcReply): void => {
    const meaning = outcome.ok ? 'answer' : meaningOf(outcome.error, job.request.params)
    if (meaning === 'rate_limited') {
      fail(job, limited)
      return
    }
    // Not where the parameters may be the reason: they are one caller's, the mark is for all.
    if (
      meaning === 'lacks_method' &&
      !outcome.ok &&
      upstream.lacking.size < maxLacking &&
      isSurelyUnknownMethod(outcome.error)
    )
      upstream.lacking.set(job.request.method, clock.now() + lackingMs)
    const isUseless =
      meaning !== 'answer' || guard(() => job.request.isUseless?.(outcome, upstream.name)) === true
    const mayRepeat = job.request.idempotent || meaning === 'lacks_method'
    if (!isUseless || !mayRepeat) finish(job, outcome)
    else {
      keepUseless(job, outcome, meaning)
      advance(job)
    }
  }

  const fail = (job: Job, failure: TransportFailure): void => {
    if (failure.failed === 'too_large') {
      job.failure = 'REPLY_TOO_LARGE'
      job.large++
    } else if (failure.failed === 'timeout' && job.failure === 'NO_UPSTREAM')
      job.failure = 'TIMEOUT'
    if (job.request.idempotent || isUnsent(failure)) advance(job)
    else finish(job, { failure: job.failure })
  }

  return {
    call: (request, done) => {
      const { signal } = request
      const refusal = signal?.aborted ? 'ABORTED' : 'NO_UPSTREAM'
      if (isStopped || signal?.aborted || inFlight >= options.maxInFlight) {
        setImmediate(done, { failure: refusal })
        return
      }
      inFlight++
      const deadline = clock.now() + (request.timeoutMs ?? options.timeoutMs)
      const job = createJob(request, done, deadline)
      if (signal) {
        job.onAbort = () => finish(job, { failure: 'ABORTED' })
        signal.addEventListener('abort', job.onAbort, { once: true })
      }
      if (jobs.isEmpty()) advance(job)
      else {
        queue(job, clock.now())
        jobs.drain()
      }
      job.isNew = false
    },
    wake: () => {
      if (upstreams.some(isUsable)) usableAt = clock.now()
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
    begin: () => {
      usableAt = clock.now()
    },
    stop: () => {
      isStopped = true
      for (const job of [...waiting]) finish(job, { failure: 'NO_UPSTREAM' })
      jobs.clear((job) => finish(job, { failure: 'NO_UPSTREAM' }))
    },
  }
}

/** Isolates exceptions thrown by callbacks, so that they do not break the transports. */
const guard = <value>(act: () => value): value | undefined => {
  try {
    return act()
  } catch (error) {
    queueMicrotask(() => {
      throw error
    })
    return undefined
  }
}

const hasRoom = (upstream: Upstream): boolean =>
  isUsable(upstream) && upstream.inFlight < upstream.transport.capacity()

const limited: TransportFailure = { failed: 'rate_limited', detail: 'refused by its rate limit' }
