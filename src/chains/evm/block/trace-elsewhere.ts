import { toHex } from '../../hex.ts'
import { toQuantity } from '../codec/raw.ts'
import { type EvmNodes, reached } from '../pool/nodes.ts'
import type { Rpc } from '../pool/rpc.ts'
import { longestString } from './internal.ts'
import { type InternalTransfer, readFrames, readTraces } from './traces.ts'

/** A block whose trace is asked for a second time. */
export type TracedBlock = { hash: Buffer; number: number; hashes: readonly string[] }

/** Makes the function that traces a block by other nodes than some; undefined where none can. */
export function createTraceElsewhere({ rpc, pool }: { rpc: Rpc; pool: EvmNodes }) {
  return async (
    { hash, number, hashes }: TracedBlock,
    avoid: readonly string[],
    signal: AbortSignal,
  ): Promise<InternalTransfer[][] | undefined> => {
    const common = { ...reached(pool, number), avoid, longestString, signal }
    const name = toHex(hash)
    if (pool.can('debug_trace')) {
      const answered = await rpc.try({
        ...common,
        method: 'debug_traceBlockByHash',
        params: [name, { tracer: 'callTracer' }],
        needs: 'debug_trace',
        accept: (result) => readFrames(result, hashes),
      })
      if (answered.kind === 'answer') return answered.answer
    }
    if (!pool.can('parity_trace')) return undefined
    const answered = await rpc.try({
      ...common,
      method: 'trace_block',
      params: [toQuantity(number)],
      needs: 'parity_trace',
      accept: (result) => readTraces(result, { hash: name, hashes }),
    })
    return answered.kind === 'answer' ? answered.answer : undefined
  }
}
