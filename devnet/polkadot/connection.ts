import { createArchiveStorage, type StateOf } from './archive.ts'
import { createBroadcast } from './broadcast.ts'
import type { PolkadotChain } from './chain.ts'
import { createChainHead } from './chain-head.ts'
import type { FollowLimits } from './follow.ts'
import {
  answerRequest,
  failure,
  type Method,
  type Notify,
  parseRequests,
  type Request,
  RpcError,
} from './rpc.ts'
import { createSubscriptions } from './subscriptions.ts'

/** What a connection is made of. */
export type ConnectionOptions = {
  chain: PolkadotChain
  stateOf: StateOf
  limits: FollowLimits
  /** What all connections share. */
  methods: Record<string, Method>
  send(message: unknown): void
  isBehind(): boolean
  change(method: string, result: unknown): unknown
}

/** What one client holds on a node. */
export type Connection = {
  /** Answers a message, then sends what its requests gave rise to. */
  take(text: string): void
  /** Its methods, by name. */
  methods: Record<string, Method>
  stopFollows(): void
  close(): void
}

/** Serves one client. */
export function createConnection(options: ConnectionOptions): Connection {
  const { chain, stateOf, limits, send, isBehind, change } = options
  let held: unknown[] | undefined
  const notify: Notify = (method, subscription, result) => {
    const message = { jsonrpc: '2.0', method, params: { subscription, result } }
    // A client must know a subscription before its first notification comes.
    if (held) held.push(message)
    else send(message)
  }
  const chainHead = createChainHead({ chain, limits, notify, isBehind })
  const sessions = [
    createSubscriptions(chain, notify),
    chainHead,
    createBroadcast(chain),
    createArchiveStorage(chain, { stateOf, notify }),
  ]
  const methods = Object.assign({}, options.methods, ...sessions.map((one) => one.methods))

  const take = (text: string) => {
    const asked = parseRequests(text)
    if (!asked) return send(failure(new RpcError(-32_700, 'Parse error')))
    const arisen: unknown[] = []
    held = arisen
    const answer = (request: Request) => answerRequest(request, methods, change)
    const replies = [asked].flat().map(answer)
    held = undefined
    const given = replies.filter((reply) => reply !== undefined)
    if (given.length > 0) send(Array.isArray(asked) ? given : given[0])
    for (const message of arisen) send(message)
  }
  return {
    take,
    methods,
    stopFollows: chainHead.stopAll,
    close: () => {
      for (const session of sessions) session.close()
    },
  }
}
