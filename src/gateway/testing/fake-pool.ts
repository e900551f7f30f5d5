// Pools, chains and clients for the tests of the gateway. Production code does not import this folder.

import type { Head, Pool, PoolOutcome, PoolRequest } from '../../chains/evm/pool/pool-types.ts'

/** A pool whose nodes, chain and answers a test decides. */
export type FakePool = Pool & {
  /** Every call, in order. */
  sent: PoolRequest[]
  /** What the nodes say; asked a moment after the call. */
  answer: (request: PoolRequest) => PoolOutcome
  /** What becomes of the calls that wait; all are answered at once unless a test holds them. */
  hold: boolean
  release(): void
  /** Shows a new head as a node does; it is the best one by default. */
  show(head: Head, upstream?: string, isBest?: boolean): void
  best: Head | undefined
}

/** Makes a pool that answers from memory. */
export function createFakePool({ upstreams = 1 } = {}): FakePool {
  const listeners = new Set<(head: Head, upstream: string) => void>()
  const held: (() => void)[] = []
  const status = Array.from({ length: upstreams }, (_, index) => ({
    name: `node-${index}`,
    state: 'healthy',
  }))
  const pool: FakePool = {
    sent: [],
    answer: () => ({ failure: 'NO_UPSTREAM' }),
    hold: false,
    best: undefined,
    release: () => {
      for (const one of held.splice(0)) one()
    },
    show: (head, upstream = 'node-0', isBest = true) => {
      if (isBest) pool.best = head
      for (const listener of listeners) listener(head, upstream)
    },
    send: (request, done) => {
      pool.sent.push(request)
      const respond = () => done(pool.answer(request))
      if (pool.hold) held.push(respond)
      else queueMicrotask(respond)
    },
    request: (request) => new Promise((resolve) => pool.send(request, resolve)),
    broadcast: async () => ({ failure: 'NO_UPSTREAM' }),
    chainId: () => 1,
    head: () => pool.best,
    can: () => false,
    has: () => false,
    onHead: (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    look: async () => {},
    onPending: () => () => {},
    pendingBegun: async () => {},
    pendingSources: () => [],
    status: () => status as never,
    stop: async () => {},
  }
  return pool
}
