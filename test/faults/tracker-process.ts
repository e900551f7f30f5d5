import { randomUUIDv7 } from 'node:crypto'
import { createEvmChain } from '../../src/chains/evm/chain.ts'
import { createPool } from '../../src/chains/evm/pool/pool.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { silentLog } from '../../src/lib/log.ts'
import { type Connection, openDatabase } from '../../src/storage/pg/database.ts'
import { startTracker } from '../../src/workers/tracker/tracker.ts'

/** What a tracker in a process of its own is made of. */
export type TrackerProcess = {
  connection: Connection
  urls: string[]
  network_id: number
  network: string
  /** Whether a node is asked only where those before it cannot serve a call. */
  isOrdered?: boolean
  ttlMs?: number
  farBehind?: number
  /** Whether balances are compared with the chain all the time. */
  isReconciled?: boolean
}

// To be killed or put to sleep at any moment. It gives up soon: outages of a world are short.
if (import.meta.main) {
  const options = JSON.parse(process.argv[2]!) as TrackerProcess
  const { connection, urls, network_id, network, ttlMs, farBehind } = options
  const { db } = openDatabase({ connection, log: silentLog })
  const pool = createPool({
    network,
    prefix: 'eth',
    upstreams: urls.map((url, at) => ({
      ...{ url, name: `node-${at}` },
      ...(options.isOrdered && { priority: at }),
    })),
    clock: systemClock,
    log: silentLog,
    // Small replies, so that a trace need not take a node seconds to be too large.
    limits: { probeIntervalMs: 200, patienceMs: 300, maxReplyBytes: 4 * 1024 * 1024 },
  })
  const tracing_patience = { awayMs: 800, pausesMs: [50, 200] }
  startTracker({
    db,
    clock: systemClock,
    log: silentLog,
    holder: randomUUIDv7(),
    network_id,
    name: { chain: 'c', network },
    chain: createEvmChain({ pool, pollMs: 100, patienceMs: 600, tracing_patience }),
    ...(ttlMs !== undefined && { ttlMs }),
    ...(farBehind !== undefined && { farBehind }),
    patience: { unreadableMs: 500, silentMs: 1_000 },
    refill: { everyMs: 200, firstPauseMs: 200, lastPauseMs: 1_000 },
    reconcile: options.isReconciled ? { firstMs: 100, everyMs: 300 } : { firstMs: 3_600_000 },
  })
}
