import { type Canonical, createCanonical } from '../../chains/evm/canonical/canonical.ts'
import type { Pool } from '../../chains/evm/pool/pool-types.ts'
import { silentLog } from '../../lib/log.ts'

/** The canonical chain of a pool in tests that move the time themselves: timers never fire alone. */
export const createStillCanonical = (
  pool: Pool,
  { now, finalityDepth }: { now(): number; finalityDepth: number },
): Canonical =>
  createCanonical({
    pool,
    prefix: 'eth',
    clock: { now, sleep: () => new Promise(() => {}) },
    log: silentLog,
    finalityDepth,
  })
