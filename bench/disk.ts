// Bytes on disk of what grows with use: addresses, transfers with their balances, and deliveries. The sizing table of
// docs/scale.md has its figures per GB from here.

import { setTimeout as delay } from 'node:timers/promises'
import { sql } from 'kysely'
import type { Db } from '../src/storage/pg/database.ts'
import { isBalanceDue } from '../test/helpers/balance-due.ts'
import { embeddedBinaries } from '../test/helpers/postgres.ts'
import { startBenchDatabase } from './lib/bench-database.ts'
import { addWebhook, queue, startBenchCourier, startBenchReceiver } from './lib/delivery-bench.ts'
import { startRecordedTracker } from './lib/recorded-tracker.ts'
import { table, writeSection } from './lib/results.ts'

const addresses = 500_000
const [blocks, transfers] = [2_000, 50]
const deliveries = 40_000

type Part = { name: string; tables: readonly string[]; rows: number }

const parts: readonly Part[] = [
  { name: 'address', tables: ['wallet_address'], rows: addresses },
  { name: 'transfer', tables: ['transfer'], rows: blocks * transfers },
  { name: 'delivery', tables: ['delivery', 'delivery_attempt'], rows: deliveries },
]

/** Of a table with its partitions, indexes and long values. */
async function bytesOf(db: Db, tables: readonly string[]): Promise<number> {
  const { rows } = await sql<{ bytes: number }>`
    select coalesce(sum(pg_total_relation_size(t.relid)), 0)::int8 as bytes
    from unnest(${tables as string[]}::regclass[]) root, lateral (
      select relid from pg_partition_tree(root) union select root) t`.execute(db)
  return Number(rows[0]!.bytes)
}

const database = await startBenchDatabase(await embeddedBinaries())
try {
  const { db } = database
  const tracker = await startRecordedTracker(db, { blocks, transfers, addresses })
  tracker.recorded.advance(blocks)
  await tracker.reaches(blocks)
  while (await isBalanceDue(db, tracker.network_id, blocks)) await delay(200)
  await tracker.stop()
  const receiver = await startBenchReceiver()
  const owner = { organization_id: tracker.organization_id, network_id: tracker.network_id }
  const webhooks = await Promise.all(
    Array.from({ length: 20 }, (_, at) => addWebhook(db, owner, `${receiver.url}/${at}`)),
  )
  await queue(db, owner, webhooks, { count: deliveries })
  const courier = startBenchCourier(database)
  while ((await receiver.read()).count < deliveries) await delay(200)
  await courier.stop()
  receiver.child.kill()
  const { rows: balances } = await sql<{ count: number }>`
    select count(*)::int8 as count from balance`.execute(db)
  const balance = { name: 'balance', tables: ['balance'], rows: Number(balances[0]!.count) }
  await sql`vacuum analyze`.execute(db)
  const rows = await Promise.all(
    [...parts, balance].map(async (part) => {
      const bytes = (await bytesOf(db, part.tables)) / part.rows
      const perGigabyte = (1_000 / bytes).toFixed(1)
      return [part.name, part.tables.join(', '), part.rows, Math.round(bytes), perGigabyte]
    }),
  )
  await writeSection(
    'Disk',
    'node bench/disk.ts',
    `Bytes of a row with its indexes, after a vacuum. A delivery has a body of 600 bytes and one attempt.\n\n${table(['What', 'tables', 'rows', 'bytes each', 'millions per GB'], rows)}`,
  )
} finally {
  await database.stop()
}
