// API v3 is optional and served by another program than API v2, which may fail or lag by itself. Its failures do not count
// against the node; only "too many requests" does, because both share one rate limit.

import type { Clock } from '../../lib/clock.ts'
import { NodeFault } from '../nodes/fault.ts'
import type { RateGate } from '../nodes/rate-gate.ts'
import { passGate } from '../nodes/window-gate.ts'
import { within } from '../nodes/within.ts'
import { faultOf, type Query, type Toncenter } from './toncenter.ts'

/** A question to an index. */
export type IndexQuestion<answer> = {
  path: string
  query: Query
  signal: AbortSignal
  /** The answer, or undefined when the response is invalid. */
  accept(result: Record<string, unknown>): answer | undefined
}

/** The index of accounts that a node offers beside its API v2 (API v3). */
export type IndexNode = {
  /** Whether it may be asked: not while it backs off, and not where there is none. */
  isUsable(): boolean
  /** Undefined where no usable answer came: another source has to be asked. */
  ask<answer>(question: IndexQuestion<answer>): Promise<answer | undefined>
  /** Its answers contradict each other: it is not asked for a long time. */
  accuse(reason: string): void
  status(): { state: 'ready' | 'paused' | 'absent' | 'unknown'; last_failure: string }
}

// The pause doubles with each failure. An absent index is looked for every hour, because nodes are
// upgraded.
const firstPauseMs = 1_000
const longestPauseMs = 600_000
const absentPauseMs = 3_600_000
const longestWaitMs = 60_000

/** Asks an index within the rate limit of its node, and backs off when it fails. */
export function createIndexNode(
  get: NonNullable<Toncenter['get']>,
  { clock, gate, indexTimeoutMs }: { clock: Clock; gate: RateGate; indexTimeoutMs: number },
): IndexNode {
  let [pauseMs, pausedUntil, lastFailure] = [firstPauseMs, 0, '']
  // The first question probes it: many nodes have no API v3.
  let isKnown = false
  let isAbsent = false

  const pause = (reason: string, ms: number): undefined => {
    lastFailure = reason
    pausedUntil = clock.now() + ms
  }
  const call = async (
    path: string,
    query: Query,
    signal: AbortSignal,
  ): Promise<Record<string, unknown> | NodeFault | undefined> => {
    // API v3 shares the key, and so the rate limit, of API v2.
    const waitMs = gate.waitMs(clock.now())
    if (waitMs > longestWaitMs) return undefined
    try {
      return await passGate({ gate, clock }, signal, () =>
        within(indexTimeoutMs, signal, (limited) => get(path, query, limited)),
      )
    } catch (error) {
      signal.throwIfAborted()
      const fault = faultOf(error)
      if (fault.kind === 'busy') gate.coolDown(clock.now(), fault.retryAfterMs)
      else if (fault.kind !== 'missing') {
        pause(fault.message, pauseMs)
        pauseMs = Math.min(pauseMs * 2, longestPauseMs)
      }
      return fault
    }
  }
  const probe = async (signal: AbortSignal): Promise<boolean> => {
    const reply = await call('masterchainInfo', [], signal)
    const isFault = reply instanceof NodeFault
    const last = isFault ? undefined : (reply?.last as { seqno?: unknown } | undefined)
    isKnown = Number.isSafeInteger(last?.seqno)
    isAbsent = reply !== undefined && (isFault ? reply.kind === 'missing' : !isKnown)
    if (isAbsent) pause('has no API v3', absentPauseMs)
    return isKnown
  }
  return {
    isUsable: () => pausedUntil <= clock.now(),
    ask: async ({ path, query, signal, accept }) => {
      if (!isKnown && !(await probe(signal))) return undefined
      const reply = await call(path, query, signal)
      if (reply === undefined || reply instanceof NodeFault) return undefined
      const answer = accept(reply)
      // An answer that cannot be read is worse than none: the index is left alone for the longest
      // pause.
      if (answer === undefined) return pause(`${path}: invalid response`, longestPauseMs)
      ;[pauseMs, lastFailure] = [firstPauseMs, '']
      return answer
    },
    accuse: (reason) => pause(reason, longestPauseMs),
    status: () => {
      const isPaused = pausedUntil > clock.now()
      const state = isAbsent ? 'absent' : isPaused ? 'paused' : isKnown ? 'ready' : 'unknown'
      return { state, last_failure: lastFailure }
    },
  }
}
