import type { Clock } from '../../../lib/clock.ts'
import type { Ask } from './capabilities.ts'
import { meaningOf } from './node-error.ts'
import { isUsable, type Upstream } from './upstream.ts'

/** Watches the transactions that one node announces. */
export type PendingWatch = {
  /** Begins and ends to watch. */
  want(isWanted: boolean): void
  /** A push of the node. */
  push(params: unknown): void
  /** The node was asked to announce them, if it can be asked. */
  begun(): Promise<void>
  /** The node announces what it gets. */
  isAlive(): boolean
  /** The connection to the node was lost, and with it what was subscribed to. */
  lost(): void
}

const hashPattern = /^0x[0-9a-f]{64}$/

/**
 * By subscription where the node pushes, otherwise by a filter that is asked again and again. Nothing is
 * polled without listeners.
 */
export function watchPending(options: {
  upstream: Upstream
  prefix: string
  clock: Clock
  ask: Ask
  notify(hash: string): void
  intervalMs?: number
}): PendingWatch {
  const { upstream, prefix, clock, ask, notify, intervalMs = 500 } = options
  let stopping = new AbortController()
  let isWanted = false
  let subscription: string | undefined
  let filter: string | undefined
  let pushes = upstream.transport.kind === 'ws'
  let firstLook = Promise.resolve()

  const call = async (method: string, params: string): Promise<unknown> => {
    const outcome = await ask(`${prefix}_${method}`, params)
    return 'failed' in outcome || !outcome.ok ? undefined : JSON.parse(outcome.result)
  }

  const poll = async (id: string) => {
    const outcome = await ask(`${prefix}_getFilterChanges`, `["${id}"]`)
    // What the filter has gathered is still there when the node cannot be reached for a moment.
    if ('failed' in outcome || id !== filter) return
    const hashes: unknown = outcome.ok ? JSON.parse(outcome.result) : undefined
    if (Array.isArray(hashes)) {
      for (const hash of hashes) if (hashPattern.test(String(hash))) notify(String(hash))
      return
    }
    if (outcome.ok || meaningOf(outcome.error) !== 'rate_limited') {
      filter = undefined
      await look()
    }
  }

  const look = async () => {
    if (!isUsable(upstream)) return
    if (pushes) {
      if (subscription !== undefined || !upstream.transport.isOpen()) return
      const id = await call('subscribe', '["newPendingTransactions"]')
      if (typeof id === 'string') subscription = id
      else if (upstream.transport.isOpen()) pushes = false
      return
    }
    if (filter !== undefined) return poll(filter)
    const id = await call('newPendingTransactionFilter', '[]')
    if (typeof id === 'string') filter = id
  }

  const run = async (signal: AbortSignal) => {
    firstLook = look().catch(() => {})
    await firstLook
    while (!signal.aborted) {
      await clock.sleep(intervalMs, signal).catch(() => {})
      if (!signal.aborted) await look().catch(() => {})
    }
    if (subscription !== undefined) await call('unsubscribe', `["${subscription}"]`).catch(() => {})
    if (filter !== undefined) await call('uninstallFilter', `["${filter}"]`).catch(() => {})
    if (isWanted) return
    subscription = undefined
    filter = undefined
  }

  return {
    want(now) {
      if (now === isWanted) return
      isWanted = now
      stopping.abort()
      if (!now) return
      stopping = new AbortController()
      subscription = undefined
      filter = undefined
      void run(stopping.signal)
    },
    begun: () => firstLook,
    isAlive: () =>
      isWanted && isUsable(upstream) && (subscription !== undefined || filter !== undefined),
    push(params) {
      if (subscription === undefined || typeof params !== 'object' || params === null) return
      const { subscription: id, result } = params as { subscription?: unknown; result?: unknown }
      if (id === subscription && hashPattern.test(String(result))) notify(String(result))
    },
    lost() {
      subscription = undefined
      filter = undefined
    },
  }
}
