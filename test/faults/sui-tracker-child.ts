import { randomUUID } from 'node:crypto'
import { createSuiChain } from '../../src/chains/sui/chain.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { silentLog } from '../../src/lib/log.ts'
import { openDatabase } from '../../src/storage/pg/database.ts'
import { startImporter } from '../../src/workers/jobs/importer.ts'
import { startTracker } from '../../src/workers/tracker/tracker.ts'

/** Messages to the tracker in its own process. */
export type ChildOptions = {
  connection: Parameters<typeof openDatabase>[0]['connection']
  network_id: number
  network: string
  urls: string[]
}

if (import.meta.main) {
  const { connection, network_id, network, urls } = JSON.parse(process.argv[2]!) as ChildOptions
  const { db } = openDatabase({ connection, log: silentLog })
  const chain = createSuiChain({
    upstreams: urls.map((url, index) => ({
      url,
      transport: index % 2 === 0 ? ('grpc' as const) : ('grpc-web' as const),
    })),
    limits: { pollMs: 100, probeMs: 200, timeoutMs: 2_000, stallMs: 500 },
  })
  const tools = { db, clock: systemClock, log: silentLog, network_id, chain }
  startTracker({ ...tools, name: { chain: 's', network }, holder: randomUUID(), ttlMs: 400 })
  startImporter({ ...tools, pollMs: 100 })
  process.stdout.write('up\n')
}
