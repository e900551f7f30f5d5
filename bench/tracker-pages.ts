import { randomUUIDv7 } from 'node:crypto'
import { type CompiledQuery, sql } from 'kysely'
import type { Db } from '../src/storage/pg/database.ts'
import { ensurePartitionsBetween } from '../src/storage/pg/partitions.ts'
import { ensureNetwork } from '../src/storage/tracking/networks.ts'
import { listWalletTransfers, type TransferPosition } from '../src/storage/transfers/transfers.ts'
import type { BenchDatabase } from './lib/bench-database.ts'
import { registerTracked } from './lib/tracked.ts'
import { withoutIndexes } from './lib/without-indexes.ts'

const pageSize = 100
const runs = 200
const begin = new Date('2026-01-01T00:00:00Z')

/** In ms, sorted: seen from the client, and planning and execution as the server counts them. */
export type PageTimes = { client: number[]; database: number[] }

/** Times of the first page and of page 1,000 of one wallet among many transfers. */
export async function measurePages(
  { db, pool }: BenchDatabase,
  transfers: number,
): Promise<{ first: PageTimes; deep: PageTimes; depth: number }> {
  const network_id = await ensureNetwork(db, { chain: 'c', network: 'mainnet', create_time: begin })
  const { organization_id, wallet_id } = await registerTracked(db, {
    network_id,
    addresses: 1,
    contracts: [],
  })
  const asset_id = randomUUIDv7()
  await sql`
    insert into asset (asset_id, network_id, asset_type, contract_address, token_id, create_time)
    values (${asset_id}, ${network_id}, 'ASSET_TYPE_C', '', 0, ${begin})`.execute(db)
  await ensurePartitionsBetween(db, begin, new Date('2026-12-31T00:00:00Z'))
  const step = (360 * 86_400) / transfers
  await db.transaction().execute(async (trx) => {
    const build = await withoutIndexes(trx, 'transfer')
    // Every tenth is of our wallet, the others of a thousand wallets.
    await sql`
      insert into transfer (wallet_id, block_time, block_number, ordinal, side, organization_id,
        network_id, address, transaction_hash, asset_id, "from", "to", value, transaction_fee,
        transfer_state)
      select case when i % 10 = 0 then ${wallet_id}::uuid else md5((i % 1000)::text)::uuid end,
        ${begin}::timestamptz + i * ${step}::float8 * interval '1 second', i / 50, i % 50, 1,
        ${organization_id}::uuid, ${network_id}::int2, decode(lpad(to_hex(i % 5000), 40, '0'), 'hex'),
        sha256(int4send(i)), ${asset_id}::uuid, '\\x01', '\\x02', i, 21000, 'TRANSFER_STATE_SUCCESS'
      from generate_series(1, ${transfers}::int) i`.execute(trx)
    await build()
  })
  await sql`vacuum (analyze) transfer`.execute(db)
  const depth = Math.min(999 * pageSize, Math.floor(transfers / 10) - pageSize)
  const { rows } = await sql<TransferPosition>`
    select block_time, block_number, ordinal, side from transfer where wallet_id = ${wallet_id}
    order by block_time desc, block_number desc, ordinal desc, side desc
    offset ${depth - 1} limit 1`.execute(db)
  const scope = { organization_id, network_id }
  const list = async (on: Db, after?: TransferPosition): Promise<void> => {
    const found = await listWalletTransfers(
      on,
      scope,
      { wallet_id },
      { limit: pageSize + 1, after },
    )
    if (found.length < pageSize) throw new Error('a short page')
  }
  const measure = async (after?: TransferPosition): Promise<PageTimes> => {
    const times: PageTimes = { client: [], database: [] }
    const statement = await compiled(db, (on) => list(on, after))
    for (let run = 0; run < runs; run++) {
      const began = performance.now()
      await list(db, after)
      times.client.push(performance.now() - began)
      const { rows: said } = await pool.query(
        `explain (analyze, timing off, format json) ${statement.sql}`,
        [...statement.parameters],
      )
      const [plan] = said[0]['QUERY PLAN']
      times.database.push(plan['Planning Time'] + plan['Execution Time'])
    }
    for (const list of Object.values(times)) list.sort((one, other) => one - other)
    return times
  }
  return {
    first: await measure(),
    deep: await measure(rows[0]!),
    depth: Math.ceil(depth / pageSize) + 1,
  }
}

/** The statement that some work makes. */
async function compiled(db: Db, work: (db: Db) => Promise<void>): Promise<CompiledQuery> {
  let made: CompiledQuery | undefined
  const watched = db.withPlugin({
    transformQuery: ({ node, queryId }) => {
      made = db.getExecutor().compileQuery(node, queryId)
      return node
    },
    transformResult: async ({ result }) => result,
  })
  await work(watched)
  if (!made) throw new Error('no statement was made')
  return made
}
