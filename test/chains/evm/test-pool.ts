import { createPool } from '../../../src/chains/evm/pool/pool.ts'
import type { Pool } from '../../../src/chains/evm/pool/pool-types.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { silentLog } from '../../../src/lib/log.ts'

type Limits = Parameters<typeof createPool>[0]['limits']

/** A pool with one node. It is probed often, so that tests do not wait until it is known. */
export const poolOf = (url: string, limits: Limits = { probeIntervalMs: 100 }): Pool =>
  createPool({
    network: 'test',
    prefix: 'eth',
    upstreams: [{ url }],
    clock: systemClock,
    log: silentLog,
    limits,
  })
