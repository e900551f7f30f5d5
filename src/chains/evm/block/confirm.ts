// A second opinion on internal transfers, because a trace is the word of one node: the balance before and after the block, or
// the trace of another node. Without either the transfer is stored with `verified: false`.

import type { Clock } from '../../../lib/clock.ts'
import { ChainUnavailableError } from '../../chain.ts'
import { toHex } from '../../hex.ts'
import { atHash } from '../codec/abi.ts'
import { type EvmNodes, reached } from '../pool/nodes.ts'
import type { Rpc } from '../pool/rpc.ts'
import type { ConfirmQuestion } from './node-claims.ts'
import type { TracedBlock } from './trace-elsewhere.ts'
import type { InternalTransfer } from './traces.ts'

type Tools = {
  rpc: Rpc
  pool: EvmNodes
  clock: Clock
  /** Traces a block by other nodes than these; undefined where none can. */
  traceElsewhere(
    block: TracedBlock,
    avoid: readonly string[],
    signal: AbortSignal,
  ): Promise<readonly (readonly InternalTransfer[])[] | undefined>
}

// A node that has just learned of the block may not have its state yet.
const pausesMs = [300, 1_000, 3_000]
const askMs = 2_000
// After a change that nothing confirmed the state is asked once, briefly: a tenant who registers an address
// whose changes cannot be explained must not delay every block for the others.
const shortTimeoutPeriodMs = 60_000
const briefMs = 500

/**
 * Makes the function that confirms what a trace says of an account: by the difference of its balance at
 * the block and its parent, read from another node where there is one, or by the trace of another node.
 */
export function createConfirm({ rpc, pool, clock, traceElsewhere }: Tools) {
  let shortTimeoutUntil = Number.NEGATIVE_INFINITY
  const balanceAt = async (
    account: Buffer,
    at: { number: number; hash: Buffer },
    avoid: readonly string[],
    signal: AbortSignal,
  ): Promise<bigint | undefined> => {
    const answered = await rpc.try({
      method: '_getBalance',
      params: [toHex(account), atHash(at.hash)],
      ...reached(pool, at.number),
      avoid,
      timeoutMs: clock.now() < shortTimeoutUntil ? briefMs : askMs,
      signal,
      accept: (result) =>
        typeof result === 'string' && /^0x[0-9a-f]{1,64}$/i.test(result)
          ? BigInt(result)
          : undefined,
    })
    return answered.kind === 'answer' ? answered.answer : undefined
  }

  const byState = async (
    { account, change, block, parent_hash }: ConfirmQuestion,
    avoid: readonly string[],
    signal: AbortSignal,
  ): Promise<boolean> => {
    // A reward changes the balance by an amount that no trace says.
    if (change === undefined || block.number === 0) return false
    const parent = { number: block.number - 1, hash: parent_hash }
    const [after, before] = await Promise.all([
      balanceAt(account, block, avoid, signal),
      balanceAt(account, parent, avoid, signal),
    ])
    return after !== undefined && before !== undefined && after - before === change
  }

  const byTrace = async (
    { account, internal, block, hashes }: ConfirmQuestion,
    avoid: readonly string[],
    signal: AbortSignal,
  ): Promise<boolean> => {
    const traced = await traceElsewhere({ ...block, hashes: hashes() }, avoid, signal)
    return traced !== undefined && netOf(traced.flat(), toHex(account)) === internal
  }

  const ignoreAway = (error: unknown): boolean => {
    if (error instanceof ChainUnavailableError) return false
    throw error
  }

  return async (question: ConfirmQuestion, signal: AbortSignal): Promise<boolean> => {
    const { tracer } = question
    const hasOthers = pool.status().length > 1
    const avoid = hasOthers && tracer ? [tracer] : []
    for (let round = 0; ; round++) {
      signal.throwIfAborted()
      if (await byState(question, avoid, signal).catch(ignoreAway)) return true
      if (clock.now() < shortTimeoutUntil) return false
      if (hasOthers && (await byTrace(question, avoid, signal).catch(ignoreAway))) return true
      // The other nodes may be behind for a moment.
      const pauseMs = pausesMs[round]
      if (pauseMs === undefined) {
        shortTimeoutUntil = clock.now() + shortTimeoutPeriodMs
        return false
      }
      await clock.sleep(pauseMs, signal)
    }
  }
}

/** By how much an account has more through these transfers. */
export function netOf(transfers: readonly InternalTransfer[], account: string): bigint {
  let net = 0n
  for (const { from, to, value } of transfers) {
    if (from.toLowerCase() === account) net -= value
    if (to.toLowerCase() === account) net += value
  }
  return net
}
