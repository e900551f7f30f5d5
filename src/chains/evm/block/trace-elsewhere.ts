import { toHex } from '../../hex.ts'
import { toQuantity } from '../codec/raw.ts'
import { type EvmNodes, reached } from '../pool/nodes.ts'
import type { Capability } from '../pool/pool-types.ts'
import type { Rpc } from '../pool/rpc.ts'
import { longestString } from './internal.ts'
import { type InternalTransfer, readFrames, readTraces } from './traces.ts'

/** A block whose trace is asked for a second time. */
export type TracedBlock = {
  hash: Buffer
  number: number
  hashes: readonly string[]
  /** Transactions after these, which nodes need not trace. */
  others: readonly string[]
}

/** Traces blocks for a second opinion. */
export type TraceElsewhere = {
  /** Whether a node that is there now, and is none of these, traces. */
  isPossible(avoid: readonly string[]): boolean
  /** Traces a block by other nodes than these; undefined where none can. */
  trace(
    block: TracedBlock,
    limits: { avoid: readonly string[]; timeoutMs?: number; signal: AbortSignal },
  ): Promise<readonly (readonly InternalTransfer[])[] | undefined>
}

/** Makes what traces a block by other nodes than some. */
export function createTraceElsewhere({ rpc, pool }: { rpc: Rpc; pool: EvmNodes }): TraceElsewhere {
  // Not `pool.can`: it counts the nodes that are avoided, and a call that no other node can serve would wait for one.
  const canOthers = (avoid: readonly string[], capability: Capability): boolean =>
    pool
      .status()
      .some(({ name, capabilities }) => !avoid.includes(name) && capabilities.includes(capability))
  return {
    isPossible: (avoid) => canOthers(avoid, 'debug_trace') || canOthers(avoid, 'parity_trace'),
    trace: async ({ hash, number, hashes, others }, limits) => {
      const { avoid } = limits
      const common = {
        ...reached(pool, number),
        ...limits,
        longestString,
        everyNode: true,
      } as const
      const name = toHex(hash)
      if (canOthers(avoid, 'debug_trace')) {
        const answered = await rpc.try({
          ...common,
          method: 'debug_traceBlockByHash',
          params: [name, { tracer: 'callTracer' }],
          needs: 'debug_trace',
          accept: (result) => readFrames(result, hashes, others),
        })
        if (answered.kind === 'answer') return answered.answer
      }
      if (!canOthers(avoid, 'parity_trace')) return undefined
      const answered = await rpc.try({
        ...common,
        method: 'trace_block',
        params: [toQuantity(number)],
        needs: 'parity_trace',
        accept: (result) => readTraces(result, { hash: name, hashes, others }),
      })
      return answered.kind === 'answer' ? answered.answer : undefined
    },
  }
}
