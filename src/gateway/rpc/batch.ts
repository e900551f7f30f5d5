// Batches: many calls in one body. The calls that fit into the rate limit are made, the first ones first, so many at a
// time that neither the nodes nor the event loop are taken from others. The others are refused one by one.

import type { RawJson } from '../../chains/evm/pool/pool-types.ts'
import type { Admission } from '../../domain/access/admit.ts'
import type { Principal } from '../../domain/access/principal.ts'
import type { Decision } from '../../domain/limits/decision.ts'
import type { Network } from '../network.ts'
import type { Session } from '../streams/session.ts'
import { type Answer, refused } from './answer.ts'
import type { RpcCall } from './envelope.ts'
import { refuse } from './rpc-error.ts'
import { noteLarge, overLimit, retryAfterOf, type Served, textOf } from './served.ts'

/** Calls of one batch that are on their way at the same time. */
// A batch must not take all slots of the nodes from the other clients.
const atOnce = 100
/** Calls of one batch that are begun in one turn of the event loop. */
// Answers from the cache come at once; without a bound a large batch of them would hold up the event loop.
const perTurn = 32

const tooLarge = refused(refuse('RESPONSE_TOO_LARGE', 'The answers of the batch are too large.'))
/** Makes the way from the calls of a batch to its answer. */
export function createBatches(options: { admission: Admission; maxBatchBytes: number }) {
  const { admission, maxBatchBytes } = options

  /** Admits as many of the calls as fit, the first ones first. */
  const admitPart = async (
    organization_id: string,
    chain: string,
    whole: Decision,
  ): Promise<{ admitted: number; decision: Decision }> => {
    let decision = whole
    // Others may take what is left in between, so that it is looked at again, and not for ever.
    for (let attempt = 0; attempt < 3; attempt++) {
      const room = Math.min(...decision.windows.map(({ remaining }) => remaining))
      if (!(room >= 1)) break
      decision = await admission.admit(organization_id, chain, room)
      if (decision.allowed)
        return { admitted: room, decision: { ...whole, windows: decision.windows } }
    }
    return { admitted: 0, decision: whole }
  }

  /** Serves a batch of which so many calls were admitted. */
  const serveBatch = (
    network: Network,
    session: Session,
    calls: readonly RpcCall[],
    admitted: number,
    decision: Decision,
    done: (served: Served) => void,
  ) => {
    const texts: RawJson[] = new Array(calls.length).fill('')
    const over = admitted < calls.length ? refused(overLimit(decision)) : undefined
    let bytes = 0
    let left = calls.length
    let next = 0
    let hit: boolean | undefined
    const finish = (index: number, call: RpcCall, answer: Answer) => {
      if (answer.hit !== undefined) hit = answer.hit && hit !== false
      // A notification has no id and no answer (JSON-RPC 2.0, section 4.1), but it is executed and counted.
      if (call.id !== undefined) {
        const text = textOf(call.id, answer)
        bytes += text.length
        // In the order in which calls end: an answer that does not fit any more becomes an error, and those before it stay.
        texts[index] = bytes > maxBatchBytes ? textOf(call.id, tooLarge) : text
      }
      if (--left > 0) return start()
      const body = texts.filter(Boolean).join(',')
      noteLarge(admission.pace, session, body, hit)
      // 429 only if no call was admitted: clients would repeat a batch that was partly executed.
      const none = over !== undefined && admitted === 0
      done({
        status: none ? (over.refusal?.status ?? 429) : body === '' ? 204 : 200,
        body: body === '' ? '' : `[${body}]`,
        decision,
        hit,
        number: -1,
        hash: '',
        retryAfter: over && retryAfterOf(decision),
      })
    }
    // Answers may come at once, so that this is a loop and not a recursion.
    let starting = false
    const resume = () => {
      starting = false
      start()
    }
    const start = () => {
      if (starting) return
      starting = true
      for (let begun = 0; next < calls.length && next - (calls.length - left) < atOnce; begun++) {
        if (begun === perTurn) return void setImmediate(resume)
        const index = next++
        const call = calls[index] as RpcCall
        if (over && index >= admitted) {
          network.countRefused(call, session, over, true)
          finish(index, call, over)
        } else network.call(call, session, (answer) => finish(index, call, answer))
      }
      starting = false
    }
    start()
  }

  /** Admits the calls of a batch beyond those that were paid for before it was read, and serves it. */
  const serveRest = async (
    network: Network,
    principal: Principal,
    calls: readonly RpcCall[],
    paid: number,
    first: Decision,
    done: (served: Served) => void,
  ): Promise<void> => {
    const { organization_id } = principal
    const session = network.sessionOf(principal)
    if (calls.length <= paid) return serveBatch(network, session, calls, calls.length, first, done)
    const rest = await admission.admit(organization_id, network.chain, calls.length - paid)
    if (rest.allowed) return serveBatch(network, session, calls, calls.length, rest, done)
    const part = await admitPart(organization_id, network.chain, rest)
    serveBatch(network, session, calls, paid + part.admitted, part.decision, done)
  }

  return { serveBatch, serveRest }
}
