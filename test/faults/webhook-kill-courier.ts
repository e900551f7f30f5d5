import { systemClock } from '../../src/lib/clock.ts'
import { systemIds } from '../../src/lib/ids.ts'
import { silentLog } from '../../src/lib/log.ts'
import { createReachable } from '../../src/lib/net/reachable.ts'
import { createSealer } from '../../src/storage/access/seal.ts'
import { openDatabase } from '../../src/storage/pg/database.ts'
import { startCourier } from '../../src/workers/webhooks/courier.ts'
import { createGuardedFetch } from '../../src/workers/webhooks/guarded-fetch.ts'

// The victim of the campaign: a courier and nothing else, with claims that come back soon.
const { connection, masterKey } = JSON.parse(process.argv[2]!)
const { db } = openDatabase({ connection, log: silentLog, max: 4 })
const reachable = createReachable(['127.0.0.0/8'])
const courier = startCourier({
  db,
  clock: systemClock,
  ids: systemIds,
  sealer: createSealer(Buffer.from(masterKey, 'hex')),
  log: silentLog,
  http: createGuardedFetch({ reachable, allowHttp: true }),
  timeoutMs: 1_000,
  claimMarginMs: 1_000,
  pollMs: 100,
  limits: { perReceiver: 8, total: 400 },
})
courier.wake()
console.log('ready')
