// Internal transactions come from traces, which only some nodes have. Kept traces are used before any node is asked: a
// trace is the most expensive call of a node.

import {
  type CallFrame,
  readCallTracer,
  readParityTraces,
} from '../../chains/evm/block/call-frames.ts'
import type { Capability } from '../../chains/evm/pool/pool-types.ts'
import { OperationError } from '../../contract/errors/errors.ts'
import type { Context, QueryHandler } from '../context.ts'
import { isCanonical, type Placed, readPlaced, resultOf } from './read.ts'
import { type QuerySource, sourceOf } from './source.ts'

type Mined = Extract<Placed, { kind: 'mined' }>

/** One tracer format of nodes. */
type Tracer = {
  needs: Capability
  method: string
  options: readonly unknown[]
  read(result: unknown, transaction_hash: string, block_hash: string): CallFrame[]
}

// `callTracer` first: geth, reth and erigon have it, and it reports the gas of each call.
const tracers: readonly Tracer[] = [
  {
    needs: 'debug_trace',
    method: 'debug_traceTransaction',
    options: [{ tracer: 'callTracer' }],
    read: readCallTracer,
  },
  {
    needs: 'parity_trace',
    method: 'trace_transaction',
    options: [],
    read: (result, transaction_hash, block_hash) =>
      readParityTraces(result, { transaction_hash, block_hash }),
  },
]

// More reorganizations in one request mean that the chain does not stand still.
const attempts = 3

/** Lists the calls inside a transaction, depth first, without the transaction itself. */
export const ListInternalTransactions: QueryHandler<'ListInternalTransactions'> = async (
  context,
  request,
) => {
  const source = sourceOf(context)
  const hash = request.transaction_hash.toLowerCase()
  for (let left = attempts; left > 0; left--) {
    const placed = await readPlaced(context, 'getTransactionReceipt', hash)
    if (placed.kind !== 'mined') throw new OperationError('TRANSACTION_NOT_FOUND')
    const generation = source.view.generation()
    const internal_transactions = await trace(context, source, hash, placed)
    // A trace does not say of which block it is: it is good if no block has left the chain meanwhile.
    if (generation === source.view.generation() && isCanonical(source, placed.number, placed.hash))
      return { internal_transactions }
  }
  throw new OperationError('UPSTREAM_UNAVAILABLE', {
    detail: 'The chain is being reorganized.',
    retryAfter: 1,
  })
}

async function trace(
  context: Context,
  source: QuerySource,
  hash: string,
  block: Mined,
): Promise<CallFrame[]> {
  for (const { method, read } of tracers) {
    const kept = source.kept.find(`${method} ${hash}`)
    if (kept !== undefined) return read(parse(kept), hash, block.hash)
  }
  for (const tracer of tracers) {
    if (!source.pool.can(tracer.needs)) continue
    const frames = await ask(context, source, tracer, hash, block)
    if (frames) return frames
  }
  throw new OperationError('TRACES_UNAVAILABLE', { retryAfter: 60 })
}

/** Asks the nodes that have a tracer; undefined when it is of no use to us. */
async function ask(
  { signal }: Context,
  { pool, kept, timeoutMs, view }: QuerySource,
  { needs, method, options, read }: Tracer,
  hash: string,
  block: Mined,
): Promise<CallFrame[] | undefined> {
  const attempt = (result: string) => {
    try {
      return read(parse(result), hash, block.hash)
    } catch {
      return undefined
    }
  }
  const generation = view.generation()
  const outcome = await pool.request({
    method,
    params: JSON.stringify([hash, ...options]),
    needs,
    // A node that is behind would say that the transaction does not exist.
    minBlock: block.number,
    idempotent: true,
    timeoutMs,
    signal,
    // The tracer is ours, so that no error is about what the caller asked for.
    isUseless: (reply) => !reply.ok || attempt(reply.result) === undefined,
  })
  // A node's own error: the state is gone, or the tracer is not there after all.
  if (!('failure' in outcome) && !outcome.ok) return undefined
  const result = resultOf(outcome)
  const frames = attempt(result)
  if (frames && generation === view.generation()) kept.keep(`${method} ${hash}`, result, block)
  return frames
}

// Texts of nodes have one character per byte; what a contract says when it fails may be any words.
const parse = (result: string): unknown =>
  JSON.parse(Buffer.from(result, 'latin1').toString('utf8'))
