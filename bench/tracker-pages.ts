import { randomUUIDv7 } from 'node:crypto'
import { sql } from 'kysely'
import { ensureChain } from '../src/storage/chains.ts'
import { ensurePartitionsBetween } from '../src/storage/partitions.ts'
import { listWalletTransfers, type TransferPosition } from '../src/storage/transfers.ts'
import type { BenchDatabase } from './lib/bench-database.ts'
import { registerTracked } from './lib/tracked.ts'

const pageSize = 100
const runs = 200
const begin = new Date('2026-01-01T00:00:00Z')

/** Times of the first page and of page 1,000 of one wallet among many transfers, in ms, sorted. */
export async function measurePages(
  { db }: BenchDatabase,
  transfers: number,
): Promise<{ first: number[]; deep: number[]; depth: number }> {
  const chain_id = await ensureChain(db, { chain: 'c', network: 'mainnet', create_time: begin })
  const { organization_id, wallet_id } = await registerTracked(db, {
    chain_id,
    addresses: 1,
    contracts: [],
  })
  const asset_id = randomUUIDv7()
  await sql`
    insert into asset (asset_id, chain_id, asset_type, contract_address, token_id, create_time)
    values (${asset_id}, ${chain_id}, 'ASSET_TYPE_C', '', 0, ${begin})`.execute(db)
  await ensurePartitionsBetween(db, begin, new Date('2026-12-31T00:00:00Z'))
  // Built at the end, they take a third of the time.
  const { rows: indexes } = await sql<{ indexname: string; indexdef: string }>`
    select indexname, indexdef from pg_indexes
    where tablename = 'transfer' and indexname <> 'transfer_pkey'`.execute(db)
  for (const { indexname } of indexes) await sql`drop index ${sql.ref(indexname)}`.execute(db)
  const step = (360 * 86_400) / transfers
  // Every tenth is of our wallet, the others of a thousand wallets.
  await sql`
    insert into transfer (wallet_id, block_time, block_number, ordinal, side, organization_id,
      chain_id, address, transaction_hash, asset_id, "from", "to", value, transaction_fee,
      transfer_state)
    select case when i % 10 = 0 then ${wallet_id}::uuid else md5((i % 1000)::text)::uuid end,
      ${begin}::timestamptz + i * ${step}::float8 * interval '1 second', i / 50, i % 50, 1,
      ${organization_id}::uuid, ${chain_id}::int2, decode(lpad(to_hex(i % 5000), 40, '0'), 'hex'),
      sha256(int4send(i)), ${asset_id}::uuid, '\\x01', '\\x02', i, 21000, 'TRANSFER_STATE_SUCCESS'
    from generate_series(1, ${transfers}::int) i`.execute(db)
  for (const { indexdef } of indexes)
    await sql.raw(indexdef.replace(' ON ONLY ', ' ON ')).execute(db)
  await sql`vacuum (analyze) transfer`.execute(db)
  const depth = Math.min(999 * pageSize, Math.floor(transfers / 10) - pageSize)
  const { rows } = await sql<TransferPosition>`
    select block_time, block_number, ordinal, side from transfer where wallet_id = ${wallet_id}
    order by block_time desc, block_number desc, ordinal desc, side desc
    offset ${depth - 1} limit 1`.execute(db)
  const scope = { organization_id, chain_id }
  const time = async (after?: TransferPosition): Promise<number[]> => {
    const times: number[] = []
    for (let run = 0; run < runs; run++) {
      const began = performance.now()
      const page = { limit: pageSize + 1, after }
      const found = await listWalletTransfers(db, scope, { wallet_id }, page)
      if (found.length < pageSize) throw new Error('a short page')
      times.push(performance.now() - began)
    }
    return times.sort((one, other) => one - other)
  }
  return { first: await time(), deep: await time(rows[0]!), depth: Math.ceil(depth / pageSize) + 1 }
}
