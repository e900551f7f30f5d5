import { randomUUID } from 'node:crypto'
import { createPolkadotChain } from '../../src/chains/polkadot/chain.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { silentLog } from '../../src/lib/log.ts'
import { openDatabase } from '../../src/storage/pg/database.ts'
import { startTracker } from '../../src/workers/tracker/tracker.ts'

// A tracker in a process of its own, which is killed at any moment.
const { connection, network_id, network, url } = JSON.parse(process.argv[2]!)
const { db } = openDatabase({ connection, log: silentLog })
const chain = createPolkadotChain({ upstreams: [{ url }], pollMs: 200, probeEveryMs: 500 })
startTracker({
  ...{ db, chain, network_id, name: { chain: 'p', network } },
  clock: systemClock,
  log: silentLog,
  holder: randomUUID(),
  // The next one must not wait long for the lease of the dead one.
  ttlMs: 500,
  // Whatever it has to catch up with waits in backlogs.
  farBehind: 0,
})
process.stdout.write('up\n')
