import type { Clock } from '../../lib/clock.ts'
import { ChainUnavailableError } from '../chain.ts'
import { type Node, NodeFailure, type NodeOptions, NodeRefusal, openNode } from './node.ts'

/** The state of a block is on none of the nodes that could be asked. */
export class StateMissingError extends ChainUnavailableError {
  override name = 'StateMissingError'
  /** Whether every node was asked, so that no node has it. */
  readonly isCertain: boolean
  constructor(message: string, isCertain: boolean) {
    super(message)
    this.isCertain = isCertain
  }
}

/** One question to the nodes. */
export type Question<answer> = {
  method: string
  params: readonly unknown[]
  /**
   * Only nodes whose final block has reached this number are asked: others would answer by what
   * they think is best, which may still leave the chain.
   */
  reached?: number
  /** The state of this block is asked for; nodes that were found without it come last. */
  stateOf?: number
  /** Whether a result says that the node does not have it, or not any more; only with `stateOf`. */
  isMissing?(result: unknown): boolean
  /** Reads a result; undefined when it is of no use, then another node is asked. */
  accept(result: unknown): answer | undefined
  signal: AbortSignal
}

/** The nodes of a chain. */
export type Nodes = {
  ask<answer>(question: Question<answer>): Promise<answer>
  /** Asks every node that can be asked. */
  askAll<answer>(question: Question<answer>): Promise<answer[]>
  /** The newest final block that any node announced; -1 before the first. */
  head(): number
  /** Announces new final blocks. */
  onHead(listen: () => void): () => void
  genesis(): string | undefined
  status(): ReturnType<Node['status']>[]
  stop(): void
}

/** What a set of nodes is made of. */
export type NodesOptions = {
  upstreams: readonly NodeOptions[]
  clock: Clock
  /** The first block of the chain; otherwise what the first node says. */
  genesis?: string
  requestTimeoutMs?: number
  probeEveryMs?: number
  /** How long to wait for a node that can answer before giving up. */
  waitMs?: number
}

const restAfterFailureMs = 5_000
const pauseMs = 100
// What nodes say when they have thrown a state away.
const missingCode = 4003

/** Opens the nodes of a chain. */
export function openNodes(options: NodesOptions): Nodes {
  const { upstreams, clock, requestTimeoutMs = 15_000, probeEveryMs = 10_000 } = options
  const { waitMs = 2_000 } = options
  const listeners = new Set<() => void>()
  const waiting = new Set<() => void>()
  const failedAt = new Map<Node, number>()
  /** What was found out about how far back a node's states go. */
  const lacksBelow = new Map<Node, number>()
  let genesis = options.genesis
  let best = -1

  const onChange = () => {
    for (const wake of waiting) wake()
    const head = Math.max(best, ...nodes.filter((node) => node.isUp()).map((node) => node.head()))
    if (head <= best) return
    best = head
    for (const listen of listeners) listen()
  }
  const admits = (found: string) => {
    genesis ??= found
    return found === genesis
  }
  const nodes: Node[] = []
  for (const upstream of upstreams)
    nodes.push(openNode(upstream, { clock, admits, onChange, requestTimeoutMs, probeEveryMs }))

  const canAnswer = (node: Node, { reached }: Question<unknown>) =>
    node.isUp() && (reached === undefined || node.head() >= reached)

  const inOrder = (question: Question<unknown>): Node[] => {
    const now = clock.now()
    const rank = (node: Node) => {
      const isTired = now - (failedAt.get(node) ?? Number.NEGATIVE_INFINITY) < restAfterFailureMs
      const lacks = question.stateOf !== undefined && question.stateOf < (lacksBelow.get(node) ?? 0)
      return (lacks ? 1e6 : 0) + (isTired ? 1e4 : 0) + node.priority
    }
    return nodes
      .filter((node) => canAnswer(node, question))
      .map((node) => ({ node, rank: rank(node) }))
      .toSorted((a, b) => a.rank - b.rank)
      .map(({ node }) => node)
  }

  /** Waits a little for a node that can answer. */
  const available = async (question: Question<unknown>, deadline: number): Promise<Node[]> => {
    for (;;) {
      const found = inOrder(question)
      const left = deadline - clock.now()
      if (found.length > 0 || left <= 0) return found
      const woken = Promise.withResolvers<void>()
      const done = new AbortController()
      waiting.add(woken.resolve)
      try {
        const time = clock.sleep(left, AbortSignal.any([question.signal, done.signal]))
        await Promise.race([woken.promise, time])
        time.catch(() => {})
      } finally {
        waiting.delete(woken.resolve)
        done.abort()
      }
      question.signal.throwIfAborted()
    }
  }

  const askOne = async <answer>(node: Node, question: Question<answer>) => {
    const { method, params, accept, isMissing, signal } = question
    const result = await node.request(method, params, signal)
    if (isMissing?.(result)) throw new NodeRefusal(missingCode, `${method}: is not kept`)
    let answer: answer | undefined
    try {
      answer = accept(result)
    } catch {
      // Whatever shape it has, it is not the one that was asked for.
    }
    if (answer === undefined) throw new NodeFailure(`${method}: an answer of no use`)
    return answer
  }

  /** Asks one after the other; gives why none answered. */
  const askEach = async <answer>(candidates: readonly Node[], question: Question<answer>) => {
    let reason = 'no node is there'
    let lacking = 0
    for (const node of candidates) {
      try {
        return { answer: await askOne(node, question) }
      } catch (error) {
        question.signal.throwIfAborted()
        if (!(error instanceof NodeFailure) && !(error instanceof NodeRefusal)) throw error
        reason = `${node.name}: ${error.message}`
        const { stateOf } = question
        if (stateOf !== undefined && error instanceof NodeRefusal && isStateMissing(error)) {
          lacking++
          lacksBelow.set(node, Math.max(lacksBelow.get(node) ?? 0, stateOf + 1))
        } else failedAt.set(node, clock.now())
      }
    }
    return { reason, isLacking: candidates.length > 0 && lacking === candidates.length }
  }

  const ask = async <answer>(question: Question<answer>): Promise<answer> => {
    const { method, signal } = question
    const deadline = clock.now() + waitMs
    for (;;) {
      signal.throwIfAborted()
      const candidates = await available(question, deadline)
      const asked = await askEach(candidates, question)
      if ('answer' in asked) return asked.answer
      const reason = `${method}: ${asked.reason}`
      if (asked.isLacking) throw new StateMissingError(reason, candidates.length === nodes.length)
      if (clock.now() + pauseMs >= deadline) throw new ChainUnavailableError(reason)
      // A connection that broke is there again soon, or another node is.
      await clock.sleep(pauseMs, signal)
    }
  }

  return {
    ask,
    askAll: async (question) => {
      const candidates = await available(question, clock.now() + waitMs)
      const answers = await Promise.allSettled(candidates.map((node) => askOne(node, question)))
      question.signal.throwIfAborted()
      return answers.flatMap((answer) => (answer.status === 'fulfilled' ? [answer.value] : []))
    },
    head: () => best,
    onHead: (listen) => {
      listeners.add(listen)
      return () => void listeners.delete(listen)
    },
    genesis: () => genesis,
    status: () => nodes.map((node) => node.status()),
    stop: () => {
      for (const node of nodes) node.stop()
    },
  }
}

const isStateMissing = ({ code, message }: NodeRefusal): boolean =>
  code === missingCode || /discarded|unknown ?block|not found in the database|prun/i.test(message)
