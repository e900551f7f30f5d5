// A second opinion on internal transfers, because a trace is the word of one node: the balance before and after the block, or
// the trace of another node. Without either the transfer is stored with `verified: false`.

import type { Clock } from '../../../lib/clock.ts'
import { ChainUnavailableError } from '../../chain.ts'
import { toHex } from '../../hex.ts'
import { atHash } from '../codec/abi.ts'
import { type EvmNodes, reached } from '../pool/nodes.ts'
import type { Rpc } from '../pool/rpc.ts'
import type { ReadFee } from './fees-elsewhere.ts'
import type { ConfirmQuestion, InternalMove } from './node-claims.ts'
import type { TraceElsewhere } from './trace-elsewhere.ts'
import type { InternalTransfer } from './traces.ts'

type Tools = {
  rpc: Rpc
  pool: EvmNodes
  clock: Clock
  traceElsewhere: TraceElsewhere
  readFee: ReadFee
}

type SecondTrace = ReturnType<TraceElsewhere['trace']>

/** Nodes whose word does not count, because they gave the trace. */
type Avoided = readonly string[]

// A node that has just learned of the block may not have its state yet.
const pausesMs = [300, 1_000, 3_000]
const askMs = 2_000
// After a change that nothing confirmed the state is asked once, briefly: a tenant who registers an address
// whose changes cannot be explained must not delay every block for the others.
const shortTimeoutPeriodMs = 60_000
const briefMs = 500
/** Transactions of one account whose fees are asked for again; each takes two calls. */
const mostFees = 8

/**
 * Makes the function that confirms what a trace says of an account: by the difference of its balance at
 * the block and its parent, read from another node where there is one, or by the trace of another node.
 */
export function createConfirm({ rpc, pool, clock, traceElsewhere, readFee }: Tools) {
  let shortTimeoutUntil = Number.NEGATIVE_INFINITY
  /** By the signal that all accounts of a check have. */
  const secondTraces = new WeakMap<AbortSignal, Map<string, SecondTrace>>()
  const timeoutMs = () => (clock.now() < shortTimeoutUntil ? briefMs : askMs)
  const balanceAt = async (
    account: Buffer,
    at: { number: number; hash: Buffer },
    avoid: Avoided,
    signal: AbortSignal,
  ): Promise<bigint | undefined> => {
    const answered = await rpc.try({
      method: '_getBalance',
      params: [toHex(account), atHash(at.hash)],
      ...reached(pool, at.number),
      avoid,
      everyNode: true,
      timeoutMs: timeoutMs(),
      signal,
      accept: (result) =>
        typeof result === 'string' && /^0x[0-9a-f]{1,64}$/i.test(result)
          ? BigInt(result)
          : undefined,
    })
    return answered.kind === 'answer' ? answered.answer : undefined
  }

  /** The price of gas is the word of the node that gave the receipts, which may be the tracer: a false fee would hide a false deposit. */
  const arePaid = async (
    { paid, block, hashes }: ConfirmQuestion,
    avoid: Avoided,
    signal: AbortSignal,
  ): Promise<boolean> => {
    if (avoid.length === 0 || paid.length === 0) return true
    const names = hashes()
    const fees = await Promise.all(
      paid.map(({ transaction }) =>
        readFee({ hash: names[transaction]!, block }, { avoid, timeoutMs: timeoutMs(), signal }),
      ),
    )
    return paid.every(({ fee }, index) => fees[index] === fee)
  }

  const byState = async (
    question: ConfirmQuestion,
    avoid: Avoided,
    signal: AbortSignal,
  ): Promise<boolean> => {
    const { account, change, block, parent_hash } = question
    const parent = { number: block.number - 1, hash: parent_hash }
    const [after, before, isPaid] = await Promise.all([
      balanceAt(account, block, avoid, signal),
      balanceAt(account, parent, avoid, signal),
      arePaid(question, avoid, signal),
    ])
    return isPaid && after !== undefined && before !== undefined && after - before === change
  }

  const byTrace = async (
    { account, moves, block, hashes }: ConfirmQuestion,
    { avoid, round }: { avoid: Avoided; round: number },
    signal: AbortSignal,
  ): Promise<boolean> => {
    // A block may have many accounts that need it, and a trace is the dearest of all calls.
    const known = secondTraces.get(signal) ?? new Map<string, SecondTrace>()
    secondTraces.set(signal, known)
    const key = JSON.stringify([toHex(block.hash), round, avoid])
    const asked =
      known.get(key) ?? traceElsewhere.trace({ ...block, hashes: hashes() }, avoid, signal)
    known.set(key, asked)
    const traced = await asked
    return traced !== undefined && areMoves(moves, traced, toHex(account))
  }

  const ignoreAway = (error: unknown): boolean => {
    if (error instanceof ChainUnavailableError) return false
    throw error
  }

  return async (question: ConfirmQuestion, signal: AbortSignal): Promise<boolean> => {
    const hasOthers = pool.status().length > 1
    const hasState = isShownByState(question)
    const canTrace = (avoid: Avoided) => hasOthers && traceElsewhere.isPossible(avoid)
    const isConfirmed = async (avoid: Avoided, round: number): Promise<boolean> => {
      if (hasState && (await byState(question, avoid, signal).catch(ignoreAway))) return true
      if (clock.now() < shortTimeoutUntil || !canTrace(avoid)) return false
      return await byTrace(question, { avoid, round }, signal).catch(ignoreAway)
    }
    let open = avoidedFor(question.tracers, pool)
    // Nothing to wait for: this is known of the account and the nodes, and says nothing of other blocks.
    if (!hasState && !open.every(canTrace)) return false
    for (let round = 0; ; round++) {
      signal.throwIfAborted()
      const left: Avoided[] = []
      for (const avoid of open) if (!(await isConfirmed(avoid, round))) left.push(avoid)
      if (left.length === 0) return true
      open = left
      if (clock.now() < shortTimeoutUntil) return false
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

/**
 * The nodes that are not asked; each list must confirm. Where every node has traced a part, the word of each of them is
 * checked by the others: if one lies, the list without it is answered by nodes that do not.
 */
function avoidedFor(tracers: readonly string[], pool: EvmNodes): Avoided[] {
  const names = pool.status().map(({ name }) => name)
  if (names.length < 2 || tracers.length === 0) return [[]]
  const isAnyLeft = names.some((name) => !tracers.includes(name))
  return isAnyLeft ? [tracers] : tracers.map((tracer) => [tracer])
}

/**
 * Whether the difference of the balance can show what moved. A reward changes it by an amount that no trace says. Of
 * moves in both directions it shows the difference only, and a deposit and a withdrawal of the same amount not at all.
 */
function isShownByState({ account, change, moves, paid, block }: ConfirmQuestion): boolean {
  const isSent = moves.some(({ from }) => from.equals(account))
  const isReceived = moves.some(({ to }) => to.equals(account))
  return (
    change !== undefined && block.number > 0 && !(isSent && isReceived) && paid.length <= mostFees
  )
}

/** Whether another trace has the same moves of an account, in each transaction that has any. */
function areMoves(
  moves: readonly InternalMove[],
  traced: readonly (readonly InternalTransfer[])[],
  account: string,
): boolean {
  for (const [transaction, own] of Map.groupBy(moves, (move) => move.transaction)) {
    const expected = own.map(({ from, to, value }) => `${toHex(from)} ${toHex(to)} ${value}`)
    const found = (traced[transaction] ?? [])
      .map(({ from, to, value }) => ({ from: from.toLowerCase(), to: to.toLowerCase(), value }))
      .filter(({ from, to }) => from === account || to === account)
      .map(({ from, to, value }) => `${from} ${to} ${value}`)
    if (expected.toSorted().join() !== found.toSorted().join()) return false
  }
  return true
}
