import { ChainUnavailableError, UnreadableError } from '../../chain.ts'
import { readError, readErrorData } from './node-error.ts'
import type { EvmNodes } from './nodes.ts'
import type { Capability, PoolOutcome, RpcReply } from './pool-types.ts'

/** One question to the nodes. */
export type Question<answer> = {
  /** Without the prefix where the chain has one: `_getBalance`; whole otherwise: `debug_…`. */
  method: string
  params: readonly unknown[]
  /** Only nodes that have reached this block are asked. */
  minBlock?: number
  needs?: Capability
  /** Longer strings of the answer are not needed. */
  longestString?: number
  /** An error of one node is not an answer: every node is asked before an error is given. */
  everyNode?: true
  timeoutMs?: number
  /** Names of nodes that are not asked, for a second opinion. */
  avoid?: readonly string[]
  /** Reads and proves a result of a node; undefined when it is of no use, then another node is asked. */
  accept(result: unknown, node: string): answer | undefined
  signal: AbortSignal
}

/** What came of a question: an answer and the node that gave it, a node's own error, or results that were all of no use. */
export type Answered<answer> =
  | { kind: 'answer'; answer: answer; node: string }
  | { kind: 'error'; code: number; message: string; data: unknown; isDisputed: boolean }
  | { kind: 'useless' }

/** Asks nodes. */
export type Rpc = {
  /** Throws when no node answers at all. */
  try<answer>(question: Question<answer>): Promise<Answered<answer>>
  /** Throws when there is no answer of use. */
  ask<answer>(question: Question<answer>): Promise<answer>
}

/** Speaks with the nodes of a pool in parsed and proven values. */
export function createRpc({ pool, prefix }: { pool: EvmNodes; prefix: string }): Rpc {
  const attempt = async <answer>(question: Question<answer>): Promise<Answered<answer>> => {
    const { accept, minBlock, needs, everyNode, timeoutMs, avoid, longestString, signal } = question
    signal.throwIfAborted()
    const method = question.method.startsWith('_') ? prefix + question.method : question.method
    // Each reply is parsed once, though it is judged here and used below. Only the last one is kept:
    // a map would have to hash the whole text of each.
    let last: { result: string; node: string; answer: answer | undefined } | undefined
    const judge = (result: string, node: string): NonNullable<typeof last> => {
      if (last?.result !== result)
        last = { result, node, answer: read(result, (value) => accept(value, node)) }
      return last
    }
    const outcome = await pool.request({
      method,
      params: JSON.stringify(question.params),
      idempotent: true,
      signal,
      ...(minBlock !== undefined && { minBlock }),
      ...(needs && { needs }),
      ...(longestString !== undefined && { longestString }),
      ...(timeoutMs !== undefined && { timeoutMs }),
      ...(avoid && { avoid }),
      isUseless: (reply: RpcReply, node: string) =>
        reply.ok ? judge(reply.result, node).answer === undefined : everyNode === true,
    })
    if (isFailure(outcome)) {
      signal.throwIfAborted()
      const message = `${method}: no node answered (${outcome.failure})`
      if (outcome.failure === 'REPLY_TOO_LARGE') throw new UnreadableError(message)
      throw new ChainUnavailableError(message)
    }
    if (!outcome.ok)
      return {
        kind: 'error',
        ...readError(outcome.error),
        data: readErrorData(outcome.error),
        isDisputed: 'isDisputed' in outcome,
      }
    const { answer, node } = judge(outcome.result, '')
    return answer === undefined ? { kind: 'useless' } : { kind: 'answer', answer, node }
  }

  return {
    try: attempt,
    ask: async (question) => {
      const answered = await attempt(question)
      if (answered.kind === 'answer') return answered.answer
      const reason = answered.kind === 'error' ? answered.message : 'no answer can be trusted'
      throw new UnreadableError(`${question.method}: ${reason}`)
    },
  }
}

const isFailure = (outcome: PoolOutcome): outcome is Extract<PoolOutcome, { failure: unknown }> =>
  'failure' in outcome

function read<answer>(
  result: string,
  accept: (result: unknown) => answer | undefined,
): answer | undefined {
  try {
    return accept(JSON.parse(result))
  } catch {
    // Whatever shape it has, it is not the one that was asked for.
    return undefined
  }
}
