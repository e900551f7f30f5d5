import type { Pool, RawJson } from '../../chains/evm/pool/pool-types.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Demand } from '../streams/pending.ts'

/** Whether the nodes are still catching up with their network. */
export type Syncing = Demand & {
  /** The last value that was sent; undefined before the first. */
  current(): RawJson | undefined
  stop(): void
}

const fields = ['startingBlock', 'currentBlock', 'highestBlock', 'pulledStates', 'knownStates']

/** Polls while there are subscribers, and reports every change. */
export function createSyncing(options: {
  pool: Pool
  prefix: string
  clock: Clock
  notify(value: RawJson): void
  intervalMs?: number
}): Syncing {
  const { pool, prefix, clock, notify, intervalMs = 2_000 } = options
  let stopping = new AbortController()
  let users = 0
  let value: RawJson | undefined

  const watch = async (signal: AbortSignal) => {
    while (!signal.aborted) {
      const outcome = await pool.request({
        method: `${prefix}_syncing`,
        params: '[]',
        idempotent: true,
        timeoutMs: 5_000,
      })
      if (signal.aborted) return
      // A failure says nothing about the state of the chain: the last value stays.
      const next = 'failure' in outcome || !outcome.ok ? undefined : read(outcome.result)
      if (next !== undefined && next !== value) {
        value = next
        notify(next)
      }
      await clock.sleep(intervalMs, signal).catch(() => {})
    }
  }

  const close = () => {
    stopping.abort()
    // A later subscriber gets the value of its time, not that of the last one.
    value = undefined
  }

  return {
    current: () => value,
    begun: () => true,
    need() {
      if (users++ === 0) {
        stopping = new AbortController()
        void watch(stopping.signal)
      }
      let isHeld = true
      return () => {
        if (!isHeld) return
        isHeld = false
        if (--users === 0) close()
      }
    },
    stop: close,
  }
}

/** The value of spec 6.2; geth 1.8 begins the names of the fields with capitals. */
function read(result: RawJson): RawJson | undefined {
  if (result === 'false') return result
  let answer: unknown
  try {
    answer = JSON.parse(result)
  } catch {}
  if (typeof answer !== 'object' || answer === null) return undefined
  const given = new Map(
    Object.entries(answer).map(([name, value]) => [
      name.charAt(0).toLowerCase() + name.slice(1),
      value,
    ]),
  )
  // Nodes of today have no states to pull, or do not report them.
  const status = Object.fromEntries(fields.map((name) => [name, given.get(name) ?? '0x0']))
  return JSON.stringify({ syncing: true, status })
}
