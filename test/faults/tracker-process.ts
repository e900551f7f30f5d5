import { randomUUIDv7 } from 'node:crypto'
import { createEvmChain } from '../../src/chains/evm/chain.ts'
import { createPool } from '../../src/chains/upstream/pool.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { silentLog } from '../../src/lib/log.ts'
import { openDatabase } from '../../src/storage/database.ts'
import { startTracker } from '../../src/workers/tracker.ts'

// A tracker in a process of its own, to be killed or put to sleep at any moment.
const { connection, url, chain_id, network, ttlMs, farBehind } = JSON.parse(process.argv[2]!)
const { db } = openDatabase({ connection, log: silentLog })
const pool = createPool({
  network,
  prefix: 'eth',
  upstreams: [{ url }],
  clock: systemClock,
  log: silentLog,
  limits: { probeIntervalMs: 200 },
})
startTracker({
  db,
  clock: systemClock,
  log: silentLog,
  holder: randomUUIDv7(),
  chain_id,
  network,
  chain: createEvmChain({ pool, pollMs: 100 }),
  ttlMs,
  farBehind,
})
