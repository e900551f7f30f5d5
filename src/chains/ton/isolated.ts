// Questions whose answer strangers write: anyone can deploy a contract, and change what it answers later. A lite server refuses a
// stack that it cannot serialize ("cannot serialize resulting stack": finish_runSmcMethod in validator/impl/liteserver.cpp of
// ton-blockchain/ton; stacks of more than 1,000 values, cells that become too deep), and toncenter writes cells as JSON, shared ones
// as often as they are named, so that 40 cells can be more than any reply (SerializeCell in runmethod.hpp of ton-http-api-cpp).

import type { Clock } from '../../lib/clock.ts'
import { ChainUnavailableError } from '../chain.ts'
import { NodeFault } from '../nodes/fault.ts'
import { passGate } from '../nodes/window-gate.ts'
import { within } from '../nodes/within.ts'
import type { TonCall, TonNodes } from './nodes.ts'
import { faultOf } from './toncenter.ts'

const callMs = 10_000
// Two calls, and a slow plan between them.
const questionMs = 60_000

/**
 * Asks one node after the other until one answers. No words of a node decide why it did not: a node that then answers the
 * control, a similar question about the same block, serves the block, and the question is what it cannot answer. That does not
 * count against it. Undefined where a node could answer the control only.
 */
export async function askIsolated<answer>(
  { nodes, clock }: { nodes: TonNodes; clock: Clock },
  { question, control }: { question: TonCall<answer>; control: TonCall<unknown> },
  signal: AbortSignal,
): Promise<answer | undefined> {
  let isServed = false
  try {
    return await nodes.set.ask({
      what: question.method,
      demand: question.seqno === undefined ? {} : { has: question.seqno },
      signal,
      longMs: questionMs,
      ask: async (node, limited) => {
        const callOne = <result>(call: TonCall<result>): Promise<result> =>
          within(callMs, limited, (cut) => nodes.call(node, call, cut))
        try {
          return await callOne(question)
        } catch (error) {
          limited.throwIfAborted()
          const { kind, message } = faultOf(error)
          if (kind === 'busy') throw error
          await passGate({ gate: node.gate, clock }, limited, () => callOne(control))
          isServed = true
          // What cannot be true no contract writes.
          if (kind === 'invalid') throw error
          // Another machine behind the address may be behind: it is waited for.
          const isAbsent = kind === 'behind' || kind === 'missing'
          throw new NodeFault(isAbsent ? 'behind' : 'refused', message)
        }
      },
    })
  } catch (error) {
    signal.throwIfAborted()
    if (isServed && error instanceof ChainUnavailableError) return undefined
    throw error
  }
}
