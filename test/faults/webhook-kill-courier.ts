import { systemClock } from '../../src/lib/clock.ts'
import { systemIds } from '../../src/lib/ids.ts'
import { silentLog } from '../../src/lib/log.ts'
import { createReachable } from '../../src/lib/net/reachable.ts'
import { createSealer } from '../../src/storage/access/seal.ts'
import { listenForChanges } from '../../src/storage/pg/changes.ts'
import { openDatabase } from '../../src/storage/pg/database.ts'
import { courierTopic } from '../../src/storage/webhooks/notifications.ts'
import { startCourier } from '../../src/workers/webhooks/courier.ts'
import { createGuardedFetch } from '../../src/workers/webhooks/guarded-fetch.ts'

// The victim of the campaign: a courier and nothing else, with the settings of the service.
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
  timeoutMs: 15_000,
  limits: { perReceiver: 16, total: 2_000 },
})
const wake = () => courier.wake()
listenForChanges({
  connection,
  log: silentLog,
  onChange: (change) => {
    if (change.kind === 'wake' && change.topic === courierTopic) wake()
  },
  onReconnect: wake,
})
process.once('SIGTERM', () => void courier.stop().then(() => process.exit()))
console.log('ready')
