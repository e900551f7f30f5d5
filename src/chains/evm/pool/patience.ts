import type { Clock } from '../../../lib/clock.ts'
import type { PoolCall } from './pool-call.ts'
import type { PoolRequest } from './pool-types.ts'
import { canServe } from './select.ts'
import { isUsable, type Upstream } from './upstream.ts'

/** How long a call waits when no node can take it now. */
export type Patience = {
  /** Milliseconds until all nodes are asked again; undefined when there is no point in it. */
  pauseBefore(call: PoolCall, now: number, waitMs: number): number | undefined
  /** The nodes have changed. */
  look(): void
  /** The nodes are connected from now on: the time without a usable one begins anew. */
  begin(): void
}

const maxRounds = 5
const roundPauseMs = 50

/** Makes it. It remembers when a node could last be used. */
export function createPatience(options: {
  upstreams: readonly Upstream[]
  clock: Clock
  /** How long a call waits for a node when there is none. */
  patienceMs: number
}): Patience {
  const { upstreams, clock, patienceMs } = options
  let usableAt = clock.now()

  const hasUnasked = ({ request, tried }: PoolCall): boolean =>
    upstreams.some((one) => !one.isWrongChain && canServe(one, request) && !tried.includes(one))

  const isBeyondAll = ({ needs }: PoolRequest): boolean =>
    needs !== undefined &&
    upstreams.every((one) => !one.capabilities.has(needs) && (one.isExplored || one.isWrongChain))

  return {
    pauseBefore(call, now, waitMs) {
      const isLarge = call.large > 0 && call.large === call.tried.length
      // Once more, and only if there is a node that could not be asked: it may have a proper answer.
      if (isLarge && (call.round > 0 || !hasUnasked(call))) return undefined
      if (upstreams.some(isUsable)) usableAt = now
      if (now + waitMs < call.deadline) return waitMs
      const isHopeless =
        call.round >= maxRounds || now - usableAt > patienceMs || isBeyondAll(call.request)
      call.strandedAt ??= now
      const patience = Math.min(call.deadline, call.strandedAt + patienceMs) - now
      if (isHopeless || patience <= 0) return undefined
      // Nodes that were asked and failed are asked again soon; unreachable nodes will wake us.
      return call.tried.length > 0 && !isLarge
        ? Math.min(roundPauseMs << call.round, patience)
        : patience
    },
    look() {
      if (upstreams.some(isUsable)) usableAt = clock.now()
    },
    begin() {
      usableAt = clock.now()
    },
  }
}
