// Internal transfers of a block by traces. A trace may be larger than any bound (anyone can make one), pruned, or refused for a
// moment: patience is bounded, then the block is stored with a gap for what is missing.

import type { Clock } from '../../../lib/clock.ts'
import { ChainUnavailableError, UnreadableError } from '../../chain.ts'
import type { ReadBlock } from '../codec/header.ts'
import { type EvmNodes, isPruned, reached } from '../pool/nodes.ts'
import type { Question, Rpc } from '../pool/rpc.ts'
import { isStateSync } from './coin-logs.ts'
import { type InternalTransfer, readFrames, readTraces } from './traces.ts'

/** How long traces are waited for: without them a deposit may be missed. */
export type TracingPatience = {
  /** How long a node that traces may be unreachable. */
  awayMs: number
  /** A trace that a node could not give is asked for again after these pauses. */
  pausesMs: readonly number[]
}

/** How long traces are waited for where nothing else is said. */
export const usualTracingPatience: TracingPatience = {
  awayMs: 300_000,
  pausesMs: [500, 2_000, 6_000],
}

// No further time after this long: a node that needs its whole time limit will need it again.
const roundsMs = 15_000
// Transactions of one block that are traced one by one, at once and in all.
const singlesAtOnce = 4
const singlesMs = 30_000
const singlePauseMs = 250
/** Addresses, hashes and quantities of a trace are shorter; its inputs and outputs are not needed. */
export const longestString = 256

/** What moved inside the calls of a block, by transaction, as far as it can be known. */
export type Internal = {
  transfers?: readonly (readonly InternalTransfer[])[]
  /** Why it is not known, or not all of it, although it should be. */
  lacks?: string
  /** Whether a node traced it; undefined where there was nothing to trace. */
  isTraced?: boolean
  /** The names of the nodes that traced its transactions; empty where none could. */
  tracers?: readonly string[]
}

/** How a block is to be traced. */
export type Tracing = {
  /** Blocks of this network were traced before: one that is not is incomplete. */
  isExpected: boolean
  /** Whether to wait for unreachable nodes, and to ask again. */
  mayRetry: boolean
}

type Attempt =
  | { kind: 'traced'; transfers: InternalTransfer[][]; tracer: string }
  /** No node that traces is there. */
  | { kind: 'away'; isDoubtful: boolean }
  | { kind: 'pruned' }
  /** A node was asked and could not; at once when it makes no sense to ask for the same again. */
  | { kind: 'failed'; isFinal: boolean; reason: string }

/**
 * Makes the function that fetches what moved inside the calls of a block. No trace of one block stops
 * the chain: what cannot be had in bounded time is named as missing, and is fetched later.
 */
export function createFetchInternal(tools: {
  rpc: Rpc
  pool: EvmNodes
  clock: Clock
  patience?: Partial<TracingPatience> | undefined
}) {
  const { rpc, pool, clock } = tools
  const { awayMs, pausesMs } = { ...usualTracingPatience, ...tools.patience }
  let awaySince: number | undefined
  const isOverdue = (): boolean => {
    awaySince ??= clock.now()
    return clock.now() - awaySince >= awayMs
  }

  const attempt = async (block: ReadBlock, signal: AbortSignal): Promise<Attempt> => {
    let failed: Attempt | undefined
    let isPrunedAway = false
    let isDoubtful = false
    for (const way of waysOf(block, pool)) {
      if (!pool.can(way.needs)) {
        isDoubtful ||= pool.has(way.needs) !== false
        continue
      }
      try {
        const answered = await rpc.try({ ...way, everyNode: true, signal })
        if (answered.kind === 'answer')
          return { kind: 'traced', transfers: answered.answer, tracer: answered.node }
        if (answered.kind === 'error' && isPruned(answered)) isPrunedAway = true
        else {
          const reason = answered.kind === 'error' ? answered.message : 'no answer can be trusted'
          failed = { kind: 'failed', isFinal: false, reason }
        }
      } catch (error) {
        signal.throwIfAborted()
        if (!(error instanceof ChainUnavailableError)) throw error
        const isFinal = error instanceof UnreadableError
        failed = { kind: 'failed', isFinal, reason: error.message }
      }
    }
    return failed ?? (isPrunedAway ? { kind: 'pruned' } : { kind: 'away', isDoubtful })
  }

  return async (block: ReadBlock, tracing: Tracing, signal: AbortSignal): Promise<Internal> => {
    const number = Number(block.number)
    const begun = clock.now()
    let failed: Attempt | undefined
    for (let round = 0; ; round++) {
      let made = await attempt(block, signal)
      // A node that failed before may be away now, and those that are left have pruned it.
      if (made.kind === 'failed') failed = made
      else if (made.kind === 'pruned') made = failed ?? made
      if (made.kind === 'traced') {
        awaySince = undefined
        const { transfers, tracer } = made
        return { transfers, isTraced: true, tracers: transfers.map(() => tracer) }
      }
      if (made.kind === 'away') {
        if (!made.isDoubtful && !tracing.isExpected) return { isTraced: false }
        if (!tracing.mayRetry || isOverdue())
          return { lacks: 'no node that traces was there', isTraced: false }
        throw new ChainUnavailableError(`no node can trace block ${number} now`)
      }
      const pauseMs = pausesMs[round]
      const isFinal = made.kind === 'failed' && made.isFinal
      const isLate = clock.now() - begun > roundsMs
      if (pauseMs === undefined || isFinal || isLate || !tracing.mayRetry) {
        if (made.kind === 'pruned')
          return { lacks: 'no node has the state to trace it any more', isTraced: false }
        return await traceSingly({ rpc, pool, clock }, block, made.reason, signal)
      }
      await clock.sleep(pauseMs, signal)
    }
  }
}

type TracedSingly = { transfers: InternalTransfer[]; tracer: string }

type Way = Omit<Question<InternalTransfer[][]>, 'signal'> & {
  needs: 'debug_trace' | 'parity_trace'
}

/** A state sync is read from its logs. Whether nodes trace it depends on their settings. */
const tracedHashes = ({ transactions }: ReadBlock): string[] =>
  transactions.filter((one) => !isStateSync(one)).map((one) => one.hash)

function waysOf(block: ReadBlock, pool: EvmNodes): Way[] {
  const { hash, number, transactions } = block
  // Made when an answer is there: most networks have one of the two ways, or none.
  const hashesOf = () => {
    const hashes = tracedHashes(block)
    return { hashes, others: transactions.slice(hashes.length).map((one) => one.hash) }
  }
  const at = reached(pool, Number(number))
  return [
    {
      method: 'debug_traceBlockByHash',
      params: [hash, { tracer: 'callTracer' }],
      needs: 'debug_trace',
      longestString,
      ...at,
      accept: (result) => {
        const { hashes, others } = hashesOf()
        return readFrames(result, hashes, others)
      },
    },
    {
      method: 'trace_block',
      params: [number],
      needs: 'parity_trace',
      longestString,
      ...at,
      accept: (result) => readTraces(result, { hash, ...hashesOf() }),
    },
  ]
}

/**
 * Traces the transactions of a block one by one, where the whole block cannot be traced: one that is
 * made to be untraceable then hides nothing but itself.
 */
async function traceSingly(
  { rpc, pool, clock }: { rpc: Rpc; pool: EvmNodes; clock: Clock },
  block: ReadBlock,
  reason: string,
  signal: AbortSignal,
): Promise<Internal> {
  const hashes = tracedHashes(block)
  const at = reached(pool, Number(block.number))
  const end = clock.now() + singlesMs
  const traced: (TracedSingly | undefined)[] = hashes.map(() => undefined)
  const traceOne = async (hash: string): Promise<TracedSingly | undefined> => {
    const ways: Omit<Question<InternalTransfer[][]>, 'signal'>[] = []
    // A large answer may have ended the only connection.
    while (!pool.can('debug_trace') && !pool.can('parity_trace') && clock.now() < end)
      await clock.sleep(singlePauseMs, signal)
    if (pool.can('debug_trace'))
      ways.push({
        method: 'debug_traceTransaction',
        params: [hash, { tracer: 'callTracer' }],
        needs: 'debug_trace',
        accept: (result) => readFrames([{ result }], [hash]),
      })
    if (pool.can('parity_trace'))
      ways.push({
        method: 'trace_transaction',
        params: [hash],
        needs: 'parity_trace',
        accept: (result) => readTraces(result, { hash: block.hash, hashes: [hash] }),
      })
    for (const way of ways) {
      if (clock.now() >= end) return undefined
      const answered = await rpc
        .try({ ...way, ...at, longestString, everyNode: true, signal })
        .catch((error: unknown) => {
          signal.throwIfAborted()
          if (!(error instanceof ChainUnavailableError)) throw error
          return undefined
        })
      if (answered?.kind === 'answer')
        return { transfers: answered.answer[0]!, tracer: answered.node }
    }
    return undefined
  }
  const traceAll = async (atOnce: number): Promise<void> => {
    const left = [...hashes.keys()].filter((index) => traced[index] === undefined)
    const work = async (): Promise<void> => {
      for (let index = left.shift(); index !== undefined; index = left.shift())
        if (clock.now() < end) traced[index] = await traceOne(hashes[index]!)
    }
    await Promise.all(Array.from({ length: atOnce }, work))
  }
  await traceAll(singlesAtOnce)
  // One that is too large may have ended the connection of the others.
  await traceAll(1)
  // Nodes trace a transaction in the block that has it now, which may be one of another branch.
  if (!(await isOnChain({ rpc, pool }, block, signal)))
    return { isTraced: true, lacks: 'it was not on the chain while its transactions were traced' }
  const missing = traced.filter((one) => one === undefined).length
  const known = {
    transfers: traced.map((one) => one?.transfers ?? []),
    tracers: traced.map((one) => one?.tracer ?? ''),
    isTraced: true,
  }
  if (missing === 0) return known
  return {
    ...known,
    lacks: `${missing} of ${hashes.length} transactions cannot be traced: ${reason.slice(0, 200)}`,
  }
}

/** Whether a node that traces has this block on its chain; where none answers, it is not known to be. */
async function isOnChain(
  { rpc, pool }: { rpc: Rpc; pool: EvmNodes },
  { number, hash }: ReadBlock,
  signal: AbortSignal,
): Promise<boolean> {
  const answered = await rpc
    .try({
      method: '_getBlockByNumber',
      params: [number, false],
      ...reached(pool, Number(number)),
      everyNode: true,
      // Of a node that traces: others may be on another branch. `trace_transaction` names its block itself.
      ...(pool.has('debug_trace') && { needs: 'debug_trace' as const }),
      signal,
      accept: (result) => {
        const found = (result as { hash?: unknown } | null)?.hash
        return String(found).toLowerCase() === hash.toLowerCase() || undefined
      },
    })
    .catch((error: unknown) => {
      signal.throwIfAborted()
      if (!(error instanceof ChainUnavailableError)) throw error
      return undefined
    })
  return answered?.kind === 'answer'
}
