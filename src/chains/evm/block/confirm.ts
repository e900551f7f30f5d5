// A second opinion on internal transfers, because a trace is the word of one node: the balance before and after the block, or
// the trace of another node. Without either the transfer is stored with `verified: false`.

import type { Clock } from '../../../lib/clock.ts'
import { ChainUnavailableError } from '../../chain.ts'
import { toHex } from '../../hex.ts'
import { atHash } from '../codec/abi.ts'
import { type EvmNodes, reached } from '../pool/nodes.ts'
import type { Rpc } from '../pool/rpc.ts'
import type { ReadFee } from './fees-elsewhere.ts'
import type { Confirm, ConfirmQuestion, InternalMove } from './node-claims.ts'
import type { TraceElsewhere } from './trace-elsewhere.ts'
import type { InternalTransfer } from './traces.ts'

type Tools = {
  rpc: Rpc
  pool: EvmNodes
  clock: Clock
  traceElsewhere: TraceElsewhere
  readFee: ReadFee
  /** How long a block may be delayed. */
  limitMs?: number
}

type SecondTrace = ReturnType<TraceElsewhere['trace']>

/** Nodes whose word does not count, because they gave the trace. */
type Avoided = readonly string[]

/** A change that is being confirmed. */
type Open = {
  question: ConfirmQuestion
  account: string
  hasState: boolean
  /** Each of these must still confirm it. */
  left: Avoided[]
  /** Asked once, with short limits. */
  isBrief: boolean
  isAsked: boolean
}

type Limits = { avoid: Avoided; timeoutMs: number; signal: AbortSignal }

// Checking delays the block: what is not confirmed by then is stored as not verified.
const confirmMs = 10_000
const askedAtOnce = 16
// A node that has just learned of the block may not have its state yet.
const pausesMs = [300, 1_000, 3_000]
const askMs = 2_000
// A tenant can register addresses whose changes nothing confirms, and must not delay every block for the others. So an
// account that was waited for in vain is asked about once, briefly, for a while. With many such accounts it is all of them,
// once waiting in vain has taken its share of the time. The second trace is asked for in any case: a block has one.
const briefPeriodMs = 60_000
const wastedMs = 10_000
const briefAskMs = 500
const briefTraceMs = 2_000
const mostRemembered = 10_000
/** Transactions of one account whose fees are asked for again; each takes two calls. */
const mostFees = 8

/**
 * Makes the function that confirms what traces say of accounts in a block: by the difference of the balance at
 * the block and its parent, read from another node where there is one, or by the trace of another node.
 */
export function createConfirm(tools: Tools): Confirm {
  const { rpc, pool, clock, traceElsewhere, readFee, limitMs = confirmMs } = tools
  const patience = createPatience(clock)
  const balanceAt = async (
    account: Buffer,
    at: { number: number; hash: Buffer },
    limits: Limits,
  ): Promise<bigint | undefined> => {
    const answered = await rpc.try({
      method: '_getBalance',
      params: [toHex(account), atHash(at.hash)],
      ...reached(pool, at.number),
      ...limits,
      everyNode: true,
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
    limits: Limits,
  ): Promise<boolean> => {
    if (limits.avoid.length === 0 || paid.length === 0) return true
    const names = hashes()
    const fees = await Promise.all(
      paid.map(({ transaction }) => readFee({ hash: names[transaction]!, block }, limits)),
    )
    return paid.every(({ fee }, index) => fees[index] === fee)
  }

  const byState = async (question: ConfirmQuestion, limits: Limits): Promise<boolean> => {
    const { account, change, block, parent_hash } = question
    const parent = { number: block.number - 1, hash: parent_hash }
    const [after, before, isPaid] = await Promise.all([
      balanceAt(account, block, limits),
      balanceAt(account, parent, limits),
      arePaid(question, limits),
    ])
    return isPaid && after !== undefined && before !== undefined && after - before === change
  }

  const hasOthers = () => pool.status().length > 1
  const canTrace = (avoid: Avoided) => hasOthers() && traceElsewhere.isPossible(avoid)

  const askState = async (one: Open, signal: AbortSignal): Promise<void> => {
    one.isAsked = true
    const timeoutMs = one.isBrief ? briefAskMs : askMs
    const left: Avoided[] = []
    for (const avoid of one.left)
      if (!(await byState(one.question, { avoid, timeoutMs, signal }).catch(ignoreAway)))
        left.push(avoid)
    one.left = left
  }

  /** Makes what asks for the traces of one round: a trace is the dearest of all calls, and a block may have many accounts that need it. */
  const createAskTrace = (signal: AbortSignal) => {
    const traces = new Map<string, SecondTrace>()
    const traceOf = ({ question, isBrief }: Open, avoid: Avoided): SecondTrace => {
      const patientKey = JSON.stringify([avoid])
      const key = isBrief ? JSON.stringify([avoid, 'brief']) : patientKey
      const { block, hashes, untraced } = question
      const limits = { avoid, signal, ...(isBrief && { timeoutMs: briefTraceMs }) }
      const begin = (): SecondTrace => {
        const names = hashes()
        const traced = names.length - untraced
        const [own, others] = [names.slice(0, traced), names.slice(traced)]
        return traceElsewhere.trace({ ...block, hashes: own, others }, limits)
      }
      const asked = traces.get(patientKey) ?? traces.get(key) ?? begin()
      traces.set(key, asked)
      return asked
    }
    return async (one: Open): Promise<void> => {
      one.isAsked = true
      const left: Avoided[] = []
      for (const avoid of one.left) {
        const traced = canTrace(avoid) && (await traceOf(one, avoid).catch(ignoreAway))
        if (!traced || !areMoves(one.question.moves, traced, one.account)) left.push(avoid)
      }
      one.left = left
    }
  }

  /** What the state cannot show does not wait for what it can. */
  const askRound = async (open: readonly Open[], signal: AbortSignal): Promise<void> => {
    const askTrace = createAskTrace(signal)
    const [shown, others] = [true, false].map((has) => open.filter((one) => one.hasState === has))
    const askStates = async (): Promise<void> => {
      const waiting = [...shown!]
      const work = async (): Promise<void> => {
        for (let one = waiting.shift(); one; one = waiting.shift()) {
          signal.throwIfAborted()
          await askState(one, signal)
        }
      }
      await Promise.all(Array.from({ length: askedAtOnce }, work))
      await Promise.all(shown!.map(askTrace))
    }
    await Promise.all([askStates(), ...others!.map(askTrace)])
  }

  const ask = async (accounts: readonly Open[], signal: AbortSignal): Promise<void> => {
    let open = accounts
    for (let round = 0; open.length > 0; round++) {
      signal.throwIfAborted()
      await askRound(open, signal)
      open = open.filter(({ left, isBrief }) => left.length > 0 && !isBrief)
      // The other nodes may be behind for a moment.
      const pauseMs = pausesMs[round]
      if (open.length === 0 || pauseMs === undefined) return
      await clock.sleep(pauseMs, signal)
    }
  }

  return async (questions, signal) => {
    const begun = clock.now()
    const all = questions.map((question): Open => {
      const account = toHex(question.account)
      const [hasState, left] = [isShownByState(question), avoidedFor(question.tracers, pool)]
      const isBrief = patience.isBriefFor(account)
      return { question, account, hasState, left, isBrief, isAsked: false }
    })
    const limit = AbortSignal.timeout(limitMs)
    // Nothing to wait for without both: this is known of the account and the nodes, and says nothing of other blocks.
    const hopeful = all
      .filter(({ hasState, left }) => hasState || left.every(canTrace))
      .toSorted((one, other) => Number(one.isBrief) - Number(other.isBrief))
    try {
      await ask(hopeful, AbortSignal.any([signal, limit]))
    } catch (error) {
      signal.throwIfAborted()
      if (!limit.aborted) throw error
    }
    const vain = hopeful.filter(
      ({ left, isAsked, isBrief }) => left.length > 0 && isAsked && !isBrief,
    )
    if (vain.length > 0)
      patience.waste(
        vain.map(({ account }) => account),
        clock.now() - begun,
      )
    return all.map(({ left }) => left.length === 0)
  }
}

const ignoreAway = (error: unknown): false => {
  if (error instanceof ChainUnavailableError) return false
  throw error
}

/** Remembers which accounts were waited for in vain, and how long that has taken. */
function createPatience({ now }: Pick<Clock, 'now'>) {
  const briefUntil = new Map<string, number>()
  let wasted = 0
  let wastedSince = Number.NEGATIVE_INFINITY
  return {
    isBriefFor: (account: string): boolean => {
      const isWasted = wasted >= wastedMs && now() < wastedSince + briefPeriodMs
      return isWasted || now() < (briefUntil.get(account) ?? Number.NEGATIVE_INFINITY)
    },
    waste: (accounts: readonly string[], ms: number): void => {
      if (now() >= wastedSince + briefPeriodMs) {
        wasted = 0
        wastedSince = now()
      }
      wasted += ms
      for (const account of accounts) {
        briefUntil.delete(account)
        briefUntil.set(account, now() + briefPeriodMs)
        if (briefUntil.size > mostRemembered) briefUntil.delete(briefUntil.keys().next().value!)
      }
    },
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
