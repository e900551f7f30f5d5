import type { Clock } from '../../lib/clock.ts'
import { BlockMissingError, ChainUnavailableError, UnreadableError } from '../chain.ts'
import type { createBooks } from './books.ts'
import { NodeFault } from './fault.ts'
import type { Demand, NodeRecord } from './node.ts'

/** One question, which any node of the chain may answer. */
export type Question<node extends NodeRecord, answer> = {
  /** For error messages: the method. */
  what: string
  demand?: Demand
  signal: AbortSignal
  /** Calls the node. Throws NodeFault where the answer cannot be used. */
  ask(node: node, signal: AbortSignal): Promise<answer>
  /** Many calls in one: its time says nothing of the latency, and it may take so long. */
  longMs?: number
}

/** How long a question may take. */
export type AskLimits = {
  /** Of one call. */
  timeoutMs: number
  /** While no node answers. */
  waitMs: number
  /** While nodes answer that they are behind. */
  behindMs: number
  /** While a rate limit is waited for. */
  gatePatienceMs: number
}

const firstPauseMs = 50
const longestPauseMs = 400
// How soon a question looks again whether those before it have gone through the rate gate.
const turnPauseMs = 5

/** Makes the function that asks one node after the other until one answers. */
export function createAsking<node extends NodeRecord>({
  nodes,
  clock,
  books,
  available,
  counted,
  limits: { timeoutMs, waitMs, behindMs, gatePatienceMs },
}: {
  nodes: readonly node[]
  clock: Clock
  books: Pick<ReturnType<typeof createBooks>, 'call'>
  /** The nodes that can answer, the best first; waits for one until a time. */
  available(demand: Demand, until: number, signal: AbortSignal): Promise<node[]>
  /** Counts a call at the rate gate. */
  counted<answer>(node: node, call: () => Promise<answer>): Promise<answer>
  limits: AskLimits
}): <answer>(question: Question<node, answer>) => Promise<answer> {
  // Questions that wait for a rate gate, the oldest first: without an order some would wait for ever.
  const queues = new Map(nodes.map((node) => [node, new Set<object>()]))
  const leaveQueues = (place: object): void => {
    for (const queue of queues.values()) queue.delete(place)
  }
  const gatedFor = (node: node, place: object): number => {
    const queue = queues.get(node)!
    const [first = place] = queue
    const gatedMs = Math.max(node.gate.waitMs(clock.now()), first === place ? 0 : turnPauseMs)
    if (gatedMs > 0) queue.add(place)
    return gatedMs
  }

  /** Asks one node after the other; says why none answered. */
  const askEach = async <answer>(
    candidates: readonly node[],
    { demand = {}, signal, ask, longMs }: Question<node, answer>,
    place: object,
  ) => {
    const counts = { asked: 0, missing: 0, refused: 0, invalid: 0, behind: 0 }
    let gateMs = Number.POSITIVE_INFINITY
    let reason = nodes.find(({ problem }) => problem)?.problem ?? 'no node can answer'
    let cause: NodeFault | undefined
    for (const node of candidates) {
      const gatedMs = gatedFor(node, place)
      if (gatedMs > 0) {
        gateMs = Math.min(gateMs, gatedMs)
        continue
      }
      leaveQueues(place)
      counts.asked++
      const call = () =>
        books.call(node, (limited) => ask(node, limited), {
          signal,
          timeoutMs: longMs ?? timeoutMs,
          isLong: longMs !== undefined,
        })
      try {
        const answer = await counted(node, call)
        if (demand.has !== undefined) node.lowest = Math.min(node.lowest, demand.has)
        return { answer }
      } catch (error) {
        if (!(error instanceof NodeFault)) throw error
        reason = `${node.name}: ${error.message}`
        cause = error
        if (error.kind === 'refused') counts.refused++
        if (error.kind === 'invalid') counts.invalid++
        if (error.kind === 'behind') counts.behind++
        if (error.kind === 'busy') gateMs = Math.min(gateMs, node.gate.waitMs(clock.now()))
        if (error.kind !== 'missing') continue
        counts.missing++
        if (demand.has !== undefined) node.lowest = Math.max(node.lowest, demand.has + 1)
      }
    }
    return { ...counts, gateMs, reason, cause }
  }

  const askInTurn = async <answer>(
    question: Question<node, answer>,
    place: object,
  ): Promise<answer> => {
    const { what, demand = {}, signal } = question
    const begunAt = clock.now()
    const until = begunAt + waitMs
    for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMs * 2, longestPauseMs)) {
      const candidates = await available(demand, until, signal)
      const tried = await askEach(candidates, question, place)
      if ('answer' in tried) return tried.answer
      const { asked, missing, refused, invalid, behind, gateMs } = tried
      const reason = `${what}: ${tried.reason}`
      if (asked > 0 && asked === candidates.length) {
        if (missing === asked) {
          const usable = nodes.filter(({ isWrongChain, isForked }) => !isWrongChain && !isForked)
          throw new BlockMissingError(reason, { isCertain: asked === usable.length })
        }
        if (refused === asked) throw new UnreadableError(reason)
      }
      const isGated = gateMs < Number.POSITIVE_INFINITY
      const sleepMs = isGated ? gateMs : pauseMs
      const patienceMs = isGated ? gatePatienceMs : behind > 0 ? behindMs : waitMs
      if (clock.now() + sleepMs > begunAt + patienceMs) {
        const { cause } = tried
        const isUseless = asked === candidates.length && invalid + missing + refused === asked
        throw invalid > 0 && isUseless
          ? new UnreadableError(reason, { cause })
          : new ChainUnavailableError(reason, { cause })
      }
      await clock.sleep(sleepMs, signal)
    }
  }

  /**
   * Asks until one node answers. Throws BlockMissingError where those that can be asked do not have
   * it, UnreadableError where they refuse, and ChainUnavailableError where none answers in time.
   */
  return async <answer>(question: Question<node, answer>): Promise<answer> => {
    question.signal.throwIfAborted()
    const place = {}
    try {
      return await askInTurn(question, place)
    } finally {
      leaveQueues(place)
    }
  }
}
