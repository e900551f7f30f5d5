import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes, randomUUIDv7 } from 'node:crypto'
import { once } from 'node:events'
import { join } from 'node:path'
import { createSecret } from '../../src/domain/webhooks/secret.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { systemIds } from '../../src/lib/ids.ts'
import { silentLog } from '../../src/lib/log.ts'
import { createReachable } from '../../src/lib/net/reachable.ts'
import { createSealer } from '../../src/storage/access/seal.ts'
import { listenForChanges } from '../../src/storage/pg/changes.ts'
import type { Db } from '../../src/storage/pg/database.ts'
import { ensureNetwork } from '../../src/storage/tracking/networks.ts'
import { queueNotifications } from '../../src/storage/webhooks/notifications.ts'
import { insertWebhook } from '../../src/storage/webhooks/webhooks.ts'
import { type Courier, startCourier } from '../../src/workers/webhooks/courier.ts'
import { createGuardedFetch } from '../../src/workers/webhooks/guarded-fetch.ts'
import type { BenchDatabase } from './bench-database.ts'
import { registerTracked } from './tracked.ts'

/** What the receiver has seen. */
export type Seen = { count: number; arrivals: [path: string, time: number, block: number][] }

/** The receiving process. */
export type BenchReceiver = {
  url: string
  child: ChildProcess
  read(reset?: boolean): Promise<Seen>
}

/** Starts the receiver in a process of its own. */
export async function startBenchReceiver(): Promise<BenchReceiver> {
  const program = join(import.meta.dirname, '../deliveries-receiver.ts')
  const child = spawn(process.execPath, [program], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [port] = await once(child.stdout!, 'data')
  const url = `http://127.0.0.1:${Number(port)}`
  const read = async (reset = false) =>
    (await (await fetch(`${url}/${reset ? 'reset' : ''}`)).json()) as Seen
  return { url, child, read }
}

/** Starts receivers that fail each in its way, in a process of their own; the first one is silent. */
export async function startBadReceivers(): Promise<{ urls: string[]; child: ChildProcess }> {
  const program = join(import.meta.dirname, '../deliveries-bad-receivers.ts')
  const child = spawn(process.execPath, [program], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [urls] = await once(child.stdout!, 'data')
  return { urls: JSON.parse(urls), child }
}

const tools = { ids: systemIds, sealer: createSealer(randomBytes(32)) }

/** Registers a webhook that leads to the receiver. */
export async function addWebhook(
  db: Db,
  { organization_id, network_id }: { organization_id: string; network_id: number },
  webhook_endpoint: string,
): Promise<string> {
  const webhook_id = randomUUIDv7()
  await insertWebhook(db, {
    webhook_id,
    organization_id,
    network_id,
    wallet_id: null,
    webhook_endpoint,
    confirmation: 1,
    secret_sealed: createSecret(tools, webhook_id).secret_sealed,
    create_time: new Date(),
  })
  return webhook_id
}

/** A body as large as that of a usual transfer. */
export const sampleData = { filler: 'x'.repeat(600) }

/** Queues so many notifications, in turn to each webhook. */
export async function queue(
  db: Db,
  owner: { organization_id: string; network_id: number },
  webhook_ids: readonly string[],
  { count, data = sampleData }: { count: number; data?: object },
): Promise<void> {
  const notifications = Array.from({ length: count }, (_, index) => ({
    ...owner,
    webhook_id: webhook_ids[index % webhook_ids.length]!,
    notification_type: 'NOTIFICATION_TYPE_EVM_TRANSACTION_UPDATED' as const,
    data,
  }))
  for (let from = 0; from < count; from += 10_000)
    await db
      .transaction()
      .execute((trx) =>
        queueNotifications(trx, notifications.slice(from, from + 10_000), new Date()),
      )
}

/** Starts a courier that is woken as in the service. */
export function startBenchCourier(
  { db, connection }: BenchDatabase,
  { timeoutMs = 15_000 } = {},
): Courier {
  const http = createGuardedFetch({
    reachable: createReachable(['127.0.0.0/8']),
    allowHttp: true,
  })
  const courier = startCourier({
    db,
    clock: systemClock,
    ...tools,
    log: silentLog,
    http,
    timeoutMs,
    stopTimeoutMs: 0,
    limits: { perReceiver: 16, total: 2_000 },
  })
  const listener = listenForChanges({
    connection,
    log: silentLog,
    onChange: ({ kind }) => {
      if (kind === 'wake') courier.wake()
    },
    onReconnect: courier.wake,
  })
  return {
    ...courier,
    stop: async () => {
      await listener.stop()
      await courier.stop()
      await http.stop()
    },
  }
}

/** A number for people. */
export const number = (value: number | string) => Number(value).toLocaleString('en')

/** A percentile. */
export const at = (times: number[], share: number) => {
  const sorted = times.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]!.toFixed(1)
}

/** An organization with a chain. */
export const ownerIn = async (db: Db) => {
  const network_id = await ensureNetwork(db, {
    chain: 'c',
    network: 'mainnet',
    create_time: new Date(),
  })
  const { organization_id } = await registerTracked(db, { network_id, addresses: 1, contracts: [] })
  return { organization_id, network_id }
}
