import type { Pool, PoolOutcome } from '../../chains/evm/pool/pool-types.ts'
import type { Network } from '../../gateway/network.ts'
import type { Answer } from '../../gateway/rpc/answer.ts'
import type { SpanFields, Tracing } from '../../lib/tracing.ts'

/** A pool whose calls are parts of the current trace. Calls outside of a trace pass unchanged. */
export const tracePool = <pool extends Pool>(
  pool: pool,
  tracing: Tracing,
  network: string,
): pool => {
  // Outside of a trace no name is made: most calls are.
  const open = (method: string) =>
    tracing.traceId() === undefined
      ? undefined
      : tracing.open(`node ${method}`, { network, method })
  return {
    ...pool,
    send(request, done) {
      const span = open(request.method)
      if (!span) return pool.send(request, done)
      // The caller continues in its own span.
      const caller = tracing.bind(done)
      span.run(() =>
        pool.send(request, (outcome) => {
          span.end(...endOf(outcome))
          caller(outcome)
        }),
      )
    },
    async request(request) {
      const span = open(request.method)
      if (!span) return await pool.request(request)
      const outcome = await span.run(() => pool.request(request))
      span.end(...endOf(outcome))
      return outcome
    },
  }
}

/** A network whose calls and reads are parts of the current trace, with the share of the cache. */
export const traceNetwork = (network: Network, tracing: Tracing): Network => {
  const open = (method: string) =>
    tracing.traceId() === undefined
      ? undefined
      : tracing.open(`gateway ${network.methodName(method)}`, {
          chain: network.chain,
          network: network.network,
        })
  return {
    ...network,
    call(call, session, done, connection) {
      const span = open(call.method)
      if (!span) return network.call(call, session, done, connection)
      const begun = performance.now()
      const name = network.methodName(call.method)
      const caller = tracing.bind(done)
      span.run(() =>
        network.call(
          call,
          session,
          (answer) => {
            network.counters.trace(name, (performance.now() - begun) * 1000, span.trace_id)
            span.end(cacheOf(answer))
            caller(answer)
          },
          connection,
        ),
      )
    },
    async read(method, args, session) {
      const span = open(method)
      if (!span) return await network.read(method, args, session)
      const answer = await span.run(() => network.read(method, args, session))
      span.end(cacheOf(answer))
      return answer
    },
  }
}

const endOf = (outcome: PoolOutcome): [SpanFields, unknown] =>
  'failure' in outcome ? [{}, new Error(String(outcome.failure))] : [{ ok: outcome.ok }, undefined]

const cacheOf = ({ ok, hit, refusal }: Answer) => ({
  ok,
  cache: hit === undefined ? 'none' : hit ? 'hit' : 'miss',
  reason: refusal?.reason,
})
