import type { Clock } from '../../../lib/clock.ts'
import { readHead } from '../pool/head.ts'
import type { Head, Pool } from '../pool/pool-types.ts'

/** What the chain itself calls final. */
export type Finalized = {
  /** Asks the nodes again, unless they were asked a moment ago. */
  look(): void
  /** Whether the chain has the tag; undefined while that is not known. */
  exists(): boolean | undefined
}

const everyMs = 10_000
const timeoutMs = 5_000

/** Reads the block under the tag `finalized`. A chain without the tag answers with an error. */
export function createFinalized(options: {
  pool: Pick<Pool, 'request'>
  prefix: string
  clock: Clock
  signal: AbortSignal
  found(block: Head): void
}): Finalized {
  const { pool, prefix, clock, signal, found } = options
  let askedAt = Number.NEGATIVE_INFINITY
  let exists: boolean | undefined

  const ask = async () => {
    const outcome = await pool.request({
      method: `${prefix}_getBlockByNumber`,
      params: '["finalized",false]',
      idempotent: true,
      timeoutMs,
      signal,
    })
    if ('failure' in outcome) return
    const block = outcome.ok
      ? readHead(JSON.parse(Buffer.from(outcome.result, 'latin1').toString()))
      : undefined
    if (block) exists = true
    // A node that has lost the tag for a moment does not take it from the chain.
    else exists ??= false
    if (block) found(block)
  }

  return {
    look: () => {
      if (clock.now() - askedAt < everyMs || signal.aborted) return
      askedAt = clock.now()
      ask().catch(() => {})
    },
    exists: () => exists,
  }
}
