import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import { NodeFault } from './fault.ts'
import type { NodeRecord } from './node.ts'
import { within } from './within.ts'

// A node that was repaired comes back by itself after this time.
const distrustMs = 600_000

/** Makes calls, and records on each node how they ended: latency, errors, back-off, rate limit. */
export function createBooks({
  clock,
  log,
  faultOf,
}: {
  clock: Clock
  log: Log
  /** What an error of the transport means. */
  faultOf(error: unknown): NodeFault
}) {
  const succeed = (node: NodeRecord): void => {
    if (node.wasProbed && !node.isReachable) log.info({ node: node.name }, 'node reachable again')
    node.isReachable = true
    node.problem = ''
    node.breaker.probeSucceeded(Number.POSITIVE_INFINITY)
    node.breaker.succeed()
    node.gate.relax()
  }

  const distrust = (node: NodeRecord, reason: string): void => {
    const now = clock.now()
    if (node.distrustedUntil <= now)
      log.warn({ node: node.name, reason }, 'node returned invalid data')
    node.problem = reason
    node.distrustedUntil = now + distrustMs
  }

  const noteUnreachable = (node: NodeRecord, reason: string): void => {
    if (node.isReachable || !node.wasProbed)
      log.warn({ node: node.name, reason }, 'node unreachable')
    node.problem = reason
    node.isReachable = false
  }

  const fail = (node: NodeRecord, error: unknown): NodeFault => {
    const fault = error instanceof NodeFault ? error : faultOf(error)
    const { kind, message } = fault
    // The node works and said so. Only the question goes to another one.
    if (kind === 'behind' || kind === 'missing' || kind === 'refused') {
      succeed(node)
      return fault
    }
    node.errors++
    if (kind === 'busy') {
      node.problem = message
      // A rate limit is no fault of the node: it does not count for the breaker.
      node.gate.coolDown(clock.now(), fault.retryAfterMs)
      return fault
    }
    node.breaker.fail(clock.now())
    node.problem = message
    if (kind === 'invalid') distrust(node, message)
    if (kind === 'down') noteUnreachable(node, message)
    return fault
  }

  return {
    succeed,
    fail,
    distrust,
    /** The connection to a node ended. That is no failed call and does not count in the error rate. */
    lose: (node: NodeRecord, reason: string): void => {
      noteUnreachable(node, reason)
      node.breaker.trip(clock.now())
    },
    /** Makes one call with a time limit. Throws NodeFault, or the reason of an aborted signal. */
    call: async <answer>(
      node: NodeRecord,
      work: (signal: AbortSignal) => Promise<answer>,
      { signal, timeoutMs, isLong }: { signal: AbortSignal; timeoutMs: number; isLong?: boolean },
    ): Promise<answer> => {
      const begunAt = clock.now()
      node.requests++
      try {
        const answer = await within(timeoutMs, signal, work)
        // Streams and long polls last as long as they should: they would spoil the ranking by latency.
        if (!isLong) node.latency.add(clock.now() - begunAt)
        succeed(node)
        return answer
      } catch (error) {
        // The caller gave up: that says nothing about the node.
        signal.throwIfAborted()
        throw fail(node, error)
      }
    },
  }
}
