import type { Clock } from '../../lib/clock.ts'
import type { RateGate } from '../evm/pool/rate-gate.ts'
import type { Query, Toncenter } from './toncenter.ts'

/** A question to an index. */
export type IndexQuestion<answer> = {
  path: string
  query: Query
  signal: AbortSignal
  /** The answer, or undefined when what came cannot be true. */
  accept(result: Record<string, unknown>): answer | undefined
}

/** The index of accounts that a node offers beside its API v2 (API v3). */
export type IndexNode = {
  /** Whether it may be asked; not while it is away, and not where there is none. */
  isUsable(): boolean
  /** Undefined where no answer came that can be used: somebody else has to be asked, no word about it. */
  ask<answer>(question: IndexQuestion<answer>): Promise<answer | undefined>
  /** What it says does not fit together: it is left alone for long. */
  accuse(reason: string): void
  status(): { state: 'ready' | 'paused' | 'absent' | 'unknown'; last_failure: string }
}

const firstPauseMs = 1_000
const longestPauseMs = 600_000
const absentPauseMs = 3_600_000
const longestWaitMs = 60_000

/** Asks an index within the limits of its node, and leaves it alone for a while when it fails. */
export function createIndexNode(
  get: NonNullable<Toncenter['get']>,
  { clock, gate }: { clock: Clock; gate: RateGate },
): IndexNode {
  let [pauseMs, pausedUntil, lastFailure] = [firstPauseMs, 0, '']
  // Probed once, by the first question: many nodes have no API v3.
  let isKnown = false
  let isAbsent = false

  const fail = (reason: string, ms: number): undefined => {
    lastFailure = reason
    pausedUntil = clock.now() + ms
  }
  const call = async (path: string, query: Query, signal: AbortSignal) => {
    // The key and so its limit are those of API v2.
    const waitMs = gate.waitMs(clock.now())
    if (waitMs > longestWaitMs) return undefined
    if (waitMs > 0) await clock.sleep(waitMs, signal)
    gate.take(clock.now())
    const reply = await get(path, query, signal)
    if (reply.ok) return reply
    const { failure } = reply
    if (failure.kind === 'busy') gate.coolDown(clock.now(), failure.retryAfterMs)
    else if (failure.kind !== 'missing') {
      fail(failure.reason, pauseMs)
      pauseMs = Math.min(pauseMs * 2, longestPauseMs)
    }
    return reply
  }
  const probe = async (signal: AbortSignal): Promise<boolean> => {
    const reply = await call('masterchainInfo', [], signal)
    const last = reply?.ok && (reply.result as { last?: { seqno?: unknown } }).last
    isKnown = last !== undefined && last !== false && Number.isSafeInteger(last?.seqno)
    isAbsent = reply !== undefined && (reply.ok ? !isKnown : reply.failure.kind === 'missing')
    if (isAbsent) fail('has no API v3', absentPauseMs)
    return isKnown
  }
  return {
    isUsable: () => pausedUntil <= clock.now(),
    ask: async ({ path, query, signal, accept }) => {
      if (!isKnown && !(await probe(signal))) return undefined
      const reply = await call(path, query, signal)
      if (!reply?.ok) return undefined
      const answer = accept(reply.result as Record<string, unknown>)
      if (answer === undefined) return fail(`${path}: returned an invalid response`, longestPauseMs)
      ;[pauseMs, lastFailure] = [firstPauseMs, '']
      return answer
    },
    accuse: (reason) => fail(reason, longestPauseMs),
    status: () => {
      const isPaused = pausedUntil > clock.now()
      const state = isAbsent ? 'absent' : isPaused ? 'paused' : isKnown ? 'ready' : 'unknown'
      return { state, last_failure: lastFailure }
    },
  }
}
