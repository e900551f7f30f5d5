import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes, randomUUIDv7 } from 'node:crypto'
import { once } from 'node:events'
import { chmod, mkdtemp, realpath, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { createSecret } from '../../src/domain/webhooks/secret.ts'
import { systemIds } from '../../src/lib/ids.ts'
import { silentLog } from '../../src/lib/log.ts'
import { insertOrganization } from '../../src/storage/access/organizations.ts'
import { createSealer } from '../../src/storage/access/seal.ts'
import { startEmbeddedPostgres } from '../../src/storage/embedded/embedded-postgres.ts'
import { migrateDatabase } from '../../src/storage/migrations/migrate.ts'
import { type Connection, type Database, openDatabase } from '../../src/storage/pg/database.ts'
import { ensureNetwork } from '../../src/storage/tracking/networks.ts'
import { queueNotifications } from '../../src/storage/webhooks/notifications.ts'
import { insertWebhook } from '../../src/storage/webhooks/webhooks.ts'
import { bundledProgram } from '../helpers/bundle.ts'
import { createRandom } from '../helpers/random.ts'
import { waitFor } from '../helpers/wait-for.ts'
import { readNumbers } from './program.ts'

/** What a campaign came to. */
export type Outcome = {
  kills: number
  events: number
  deliveries: number
  /** Deliveries beyond the first of an event. */
  repeated: number
  lost: number
  /** Deliveries of one id whose bodies differ. */
  different: number
  /** Numbers that are missing or doubled in the sequence of a webhook. */
  holes: number
}

const webhooks = 10

/** Kills couriers at random points while they deliver, and counts what arrived. */
export async function runWebhookCampaign(options: {
  database: Pick<Database, 'db' | 'pool'>
  connection: Connection
  kills: number
  events: number
  seed: number
  onKill?(text: string): void
}): Promise<Outcome> {
  const { database, connection, kills, events, seed, onKill = () => {} } = options
  const { db } = database
  const random = createRandom(seed)
  const masterKey = randomBytes(32)
  const bodies = new Map<string, string>()
  let deliveries = 0
  let different = 0
  const receiver = createServer((request, response) => {
    let body = ''
    request.setEncoding('utf8').on('data', (chunk: string) => {
      body += chunk
    })
    request.on('end', () => {
      const id = String(request.headers['webhook-id'])
      deliveries++
      if ((bodies.get(id) ?? body) !== body) different++
      bodies.set(id, body)
      response.writeHead(204).end()
    })
  })
  receiver.listen(0, '127.0.0.1')
  await once(receiver, 'listening')
  const port = (receiver.address() as AddressInfo).port

  const now = new Date()
  const organization_id = randomUUIDv7()
  const domain = `kill-${organization_id}`
  await insertOrganization(db, { organization_id, name: 'n', domain, create_time: now })
  const network_id = await ensureNetwork(db, { chain: 'c', network: domain, create_time: now })
  const tools = { ids: systemIds, sealer: createSealer(masterKey) }
  const ids = Array.from({ length: webhooks }, () => randomUUIDv7())
  for (const webhook_id of ids)
    await insertWebhook(db, {
      webhook_id,
      organization_id,
      network_id,
      wallet_id: null,
      webhook_endpoint: `http://127.0.0.1:${port}/${webhook_id}`,
      confirmation: 1,
      secret_sealed: createSecret(tools, webhook_id).secret_sealed,
      create_time: now,
    })

  const queued: string[] = []
  const queue = async () => {
    const notifications = Array.from({ length: events }, (_, index) => ({
      organization_id,
      network_id,
      webhook_id: ids[index % webhooks]!,
      notification_type: 'NOTIFICATION_TYPE_EVM_TRANSACTION_UPDATED' as const,
      data: { event: queued.length + index, filler: 'x'.repeat(500) },
    }))
    const made = await db
      .transaction()
      .execute((trx) => queueNotifications(trx, notifications, new Date()))
    queued.push(...made)
  }

  const start = async (): Promise<ChildProcess> => {
    const program = await bundledProgram('test/faults/webhook-kill-courier.ts')
    const given = JSON.stringify({ connection, masterKey: masterKey.toString('hex') })
    const child = spawn(process.execPath, [program, given], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    await once(child.stdout!, 'data')
    return child
  }
  const kill = async (child: ChildProcess) => {
    const gone = once(child, 'exit')
    child.kill('SIGKILL')
    await gone
  }

  try {
    for (let killed = 1; killed <= kills; killed++) {
      await queue()
      const before = deliveries
      const child = await start()
      // Somewhere in the middle of it, also before the first and after the last.
      const target = before + Math.floor(random() * events * 1.05)
      const deadline = Date.now() + 3_000
      while (deliveries < target && Date.now() < deadline) await delay(1)
      await kill(child)
      onKill(`kill ${killed} after ${deliveries - before} deliveries`)
    }
    const last = await start()
    await waitFor(
      'everything is delivered and recorded',
      async () => {
        const { rows } = await database.pool.query(
          'select 1 from delivery_queue where organization_id = $1 limit 1',
          [organization_id],
        )
        return rows.length === 0
      },
      { timeoutMs: 1_800_000, everyMs: 200 },
    )
    await kill(last)
  } finally {
    receiver.closeAllConnections()
    receiver.close()
  }

  let holes = 0
  const sequences = Map.groupBy(
    [...bodies.values()].map((body) => JSON.parse(body)),
    ({ webhook_id }) => webhook_id as string,
  )
  for (const mine of sequences.values()) {
    const numbers = mine.map(({ data }) => data.sequence as number).sort((a, b) => a - b)
    numbers.forEach((number, index) => {
      if (number !== index + 1) holes++
    })
  }
  return {
    kills,
    events: queued.length,
    deliveries,
    repeated: deliveries - bodies.size,
    lost: queued.filter((id) => !bodies.has(id)).length,
    different,
    holes,
  }
}

if (import.meta.main) {
  const numbers = readNumbers({ kills: 100, events: 1_000, seed: 1 })
  const dataDir = await realpath(await mkdtemp(join(tmpdir(), 'portolan-webhook-kill-')))
  await chmod(dataDir, 0o711)
  const server = await startEmbeddedPostgres({ dataDir, log: silentLog })
  const database = openDatabase({ connection: server.connection, log: silentLog })
  try {
    await migrateDatabase(database.db, { log: silentLog })
    const outcome = await runWebhookCampaign({
      database,
      connection: server.connection,
      ...numbers,
      onKill: (text) => console.log(text),
    })
    console.log(outcome)
    if (outcome.lost + outcome.different + outcome.holes > 0) process.exitCode = 1
  } finally {
    await database.stop()
    await server.stop()
    await rm(dataDir, { recursive: true, force: true })
  }
}
