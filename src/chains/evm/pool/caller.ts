// The life of a call: choose a node, attempt, judge the outcome, and then finish, try the next node, wait for a free
// slot, or pause. `select.ts` chooses, `attempts.ts` sends and hedges, `judge.ts` decides what an outcome means, and
// `patience.ts` how long a call waits while there is no node. Steps are callbacks, not promises: every call of the
// gateway passes here.

import type { Clock } from '../../../lib/clock.ts'
import type { Timers } from '../transport/timers.ts'
import type { TransportOutcome } from '../transport/transport.ts'
import type { Asker } from './ask.ts'
import { createAttempts } from './attempts.ts'
import { createCallQueue, type OfferOutcome } from './call-queue.ts'
import { guard, judge } from './judge.ts'
import { createPatience } from './patience.ts'
import { createPoolCall, type PoolCall, withoutAnswer } from './pool-call.ts'
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
  const waiting = new Set<PoolCall>()
  // One object for all choices: it is read within `select` only, so none has to be made for each call.
  const context = { now: 0, bestHead: 0, maxLag: options.maxLag(), random: options.random }
  let inFlight = 0
  let isStopped = false
  let isWaking = false

  const choose = (call: PoolCall, now: number) => {
    context.now = now
    context.bestHead = options.bestHead()
    context.maxLag = options.maxLag()
    return select(upstreams, call.request, call.tried, context)
  }

  const finish = (call: PoolCall, outcome: PoolOutcome): void => {
    if (call.isOver) return
    call.isOver = true
    inFlight--
    rest(call)
    if (call.hedge) timers.cancel(call.hedge)
    if (call.onAbort) call.request.signal?.removeEventListener('abort', call.onAbort)
    // A caller never gets its outcome before `call` has returned.
    if (call.isNew) setImmediate(call.done, outcome)
    else guard(() => call.done(outcome))
  }

  const rest = (call: PoolCall): void => {
    if (!call.wait) return
    timers.cancel(call.wait)
    call.wait = undefined
    waiting.delete(call)
  }

  const advance = (call: PoolCall, now = clock.now()): void => {
    if (call.isOver) return
    rest(call)
    if (now >= call.deadline) {
      finish(call, withoutAnswer(call) ?? { failure: call.round > 0 ? call.failure : 'TIMEOUT' })
      return
    }
    // The order matters. A free node is used at once. While an attempt is under way, its outcome decides. Busy nodes get
    // the call as soon as they have a free slot. An answer without use, such as null for a block that a node may lack, is
    // better than a failure once every node was asked.
    const { chosen, hasOthers, waitMs, isBusy } = choose(call, now)
    if (chosen) attempt(call, chosen, hasOthers, now)
    else if (call.inFlight > 0) return
    else if (isBusy) queue(call, now)
    else if (call.useless) finish(call, withoutAnswer(call)!)
    else pause(call, patience.pauseBefore(call, now, waitMs))
  }

  /** Waits for a free slot of a node, up to the deadline of the call. */
  const queue = (call: PoolCall, now: number): void => {
    call.wait = timers.after(call.deadline - now, () => advance(call))
    calls.push(call)
  }

  /**
   * The queue offers its first call. `refused` means that other calls may have a place where this one has none: a node with
   * a free slot may lack what this call needs. `no room` ends the round.
   */
  const offer = (call: PoolCall, now: number): OfferOutcome => {
    if (call.isOver) return 'taken'
    const { chosen, hasOthers, isBusy } = choose(call, now)
    if (!chosen && isBusy) return upstreams.some(hasRoom) ? 'refused' : 'no room'
    rest(call)
    if (chosen) attempt(call, chosen, hasOthers, now)
    else advance(call)
    return 'taken'
  }
  const calls = createCallQueue({ clock, offer })

  /** All nodes were tried. After the pause each of them may be tried again; without one the call has failed. */
  const pause = (call: PoolCall, pauseMs: number | undefined): void => {
    if (pauseMs === undefined) {
      finish(call, { failure: call.failure })
      return
    }
    call.wait = timers.after(pauseMs, () => {
      call.round++
      call.tried = []
      call.large = 0
      advance(call)
    })
    waiting.add(call)
  }

  const settled = (call: PoolCall, upstream: Upstream, outcome: TransportOutcome): void => {
    if (!call.isOver) {
      const verdict = judge(call, upstream, outcome, clock.now)
      if (verdict === 'repeat') advance(call)
      else if (verdict === 'failed' || 'failed' in outcome) finish(call, { failure: call.failure })
      else finish(call, outcome)
    }
    calls.drain()
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
      const call = createPoolCall(request, done, now + (request.timeoutMs ?? options.timeoutMs))
      if (signal) {
        call.onAbort = () => finish(call, { failure: 'ABORTED' })
        signal.addEventListener('abort', call.onAbort, { once: true })
      }
      // A new call does not overtake those that wait.
      if (calls.isEmpty()) advance(call, now)
      else {
        queue(call, now)
        calls.drain()
      }
      call.isNew = false
    },
    wake: () => {
      patience.look()
      calls.drain()
      if (isWaking || waiting.size === 0) return
      isWaking = true
      setImmediate(() => {
        isWaking = false
        for (const call of [...waiting]) {
          // Those that no node has failed in this round. The others pause because of failures, and their pause ends by itself.
          if (call.tried.length === call.large) advance(call)
        }
      })
    },
    busy: () => inFlight,
    begin: patience.begin,
    stop: () => {
      isStopped = true
      // Calls under way are ended by the transports, which stop next.
      for (const call of [...waiting]) finish(call, { failure: 'NO_UPSTREAM' })
      calls.clear((call) => finish(call, { failure: 'NO_UPSTREAM' }))
    },
  }
}

const hasRoom = (upstream: Upstream): boolean =>
  isUsable(upstream) && upstream.inFlight < upstream.transport.capacity()
