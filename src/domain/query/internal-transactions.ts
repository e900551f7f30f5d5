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
import { isCanonical, type Placed, readPlaced, reorganizing, resultOf } from './read.ts'
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
// A node may have left the branch without having shown it.
const pauseMs = 200

/** Lists the calls inside a transaction, depth first, without the transaction itself. */
export const ListInternalTransactions: QueryHandler<'ListInternalTransactions'> = async (
  context,
  request,
) => {
  const source = sourceOf(context)
  const hash = request.transaction_hash.toLowerCase()
  let wasRefused = false
  for (let left = attempts; left > 0; left--) {
    const placed = await readPlaced(context, 'getTransactionReceipt', hash)
    if (placed.kind !== 'mined') throw new OperationError('TRANSACTION_NOT_FOUND')
    const internal_transactions = await trace(context, source, hash, placed)
    if (internal_transactions !== 'moved' && internal_transactions !== 'refused')
      return { internal_transactions }
    const isRefused = internal_transactions === 'refused'
    // Once more if it is not final: a node that has just left the branch does not know the transaction.
    if (isRefused && (wasRefused || isFinal(source, placed))) throw unavailable()
    wasRefused = isRefused
    await context.clock.sleep(pauseMs, context.signal)
  }
  throw wasRefused ? unavailable() : reorganizing()
}

/** Whether the block does not leave the chain any more, so that every node that has it has the same transactions. */
const isFinal = ({ view }: QuerySource, { number }: Mined): boolean => number <= view.final()

const unavailable = () => new OperationError('TRACES_UNAVAILABLE', { retryAfter: 60 })

/** The calls; `refused` when no node traces the transaction, `moved` when the trace may be of another branch. */
type Traced = CallFrame[] | 'refused' | 'moved'

async function trace(
  context: Context,
  source: QuerySource,
  hash: string,
  block: Mined,
): Promise<Traced> {
  for (const { method, read } of tracers) {
    const kept = source.kept.find(`${method} ${hash}`)
    if (kept !== undefined) return read(parse(kept), hash, block.hash)
  }
  const usable = tracers.filter(({ needs }) => source.pool.can(needs))
  if (usable.length === 0) throw unavailable()
  for (const tracer of usable) {
    const traced = await ask(context, source, tracer, hash, block)
    if (traced !== 'refused') return traced
  }
  return 'refused'
}

/** Asks the nodes that have a tracer. */
async function ask(
  { signal }: Context,
  source: QuerySource,
  { needs, method, options, read }: Tracer,
  hash: string,
  block: Mined,
): Promise<Traced> {
  const { pool, kept, timeoutMs, view } = source
  const attempt = (result: string) => {
    try {
      return read(parse(result), hash, block.hash)
    } catch {
      return undefined
    }
  }
  const generation = view.generation()
  const nodes = pool.status().length
  // The head of a node that is only behind may be unknown, or too old to be linked, long after a final block.
  const aside = isFinal(source, block) ? [] : view.aside()
  let tracedBy = ''
  const outcome = await pool.request({
    method,
    params: JSON.stringify([hash, ...options]),
    needs,
    // A node that is behind would say that the transaction does not exist.
    minBlock: block.number,
    idempotent: true,
    timeoutMs,
    signal,
    // On another branch the same transaction may have done something else.
    ...(aside.length < nodes && { avoid: aside }),
    // The tracer is ours, so that no error is about what the caller asked for.
    isUseless: (reply, node) => {
      tracedBy = node
      return !reply.ok || attempt(reply.result) === undefined
    },
  })
  // A node's own error: the state is gone, or the tracer is not there after all.
  if (!('failure' in outcome) && !outcome.ok) return 'refused'
  const result = resultOf(outcome)
  const frames = attempt(result)
  if (!frames) return 'refused'
  // A trace does not say of which block it is: it is good if its node has not left the branch, and no block the chain.
  if (nodes > 1 && !isFinal(source, block)) await view.settle()
  const isOn =
    generation === view.generation() &&
    isCanonical(source, block.number, block.hash) &&
    (nodes === 1 || isFinal(source, block) || !view.aside().includes(tracedBy))
  if (!isOn) return 'moved'
  kept.keep(`${method} ${hash}`, result, block)
  return frames
}

// Texts of nodes have one character per byte; what a contract says when it fails may be any words.
const parse = (result: string): unknown =>
  JSON.parse(Buffer.from(result, 'latin1').toString('utf8'))
