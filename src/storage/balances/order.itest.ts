import { createHash, randomUUIDv7 } from 'node:crypto'
import { sql } from 'kysely'
import { beforeAll, describe, expect, it } from 'vitest'
import { freshDatabase, hasEngine } from '../../../test/helpers/database.ts'
import type { Engine } from '../../../test/helpers/postgres.ts'
import { insertOrganization } from '../access/organizations.ts'
import type { Db } from '../pg/database.ts'
import { ensureNetwork } from '../tracking/networks.ts'
import { insertWallet } from '../wallets/wallets.ts'
import {
  type BalanceFilter,
  type BalancePosition,
  balanceScan,
  type ListedBalance,
  listBalances,
  listSums,
  storeReadings,
  storeTracked,
} from './balances.ts'

const { db, pool } = await freshDatabase()
const create_time = new Date('2026-01-01T00:00:00Z')
const organization_id = randomUUIDv7()
const wallet_ids = [randomUUIDv7(), randomUUIDv7()]
const assets = ['a0', 'b1'].map((code) => ({
  asset_id: randomUUIDv7(),
  asset_type: 'ASSET_TYPE_ERC20' as const,
  contract_address: Buffer.from(code, 'hex'),
}))
let scope = { organization_id, network_id: 0 }

beforeAll(async () => {
  const network_id = await ensureNetwork(db, { chain: 'c', network: 'mainnet', create_time })
  scope = { organization_id, network_id }
  await insertOrganization(db, { organization_id, name: 'o', domain: 'o', create_time })
  for (const wallet_id of wallet_ids)
    await insertWallet(db, { wallet_id, ...scope, name: 'w', confirmation: 1, create_time })
  for (const { asset_id, asset_type, contract_address } of assets)
    await sql`
      insert into asset (asset_id, network_id, asset_type, contract_address, token_id, create_time)
      values (${asset_id}, ${network_id}, ${asset_type}, ${contract_address}, 0, ${create_time})`.execute(
      db,
    )
  await sql`
    insert into wallet_address (network_id, address, organization_id, wallet_id, create_time)
    select ${network_id}::int2, sha256(int4send(i)), ${organization_id}::uuid,
      (${wallet_ids}::uuid[])[1 + i % 2], ${create_time}::timestamptz
    from generate_series(0, 99) i`.execute(db)
  const { rows } = await sql<{ wallet_id: string; address: Buffer }>`
    select wallet_id, address from wallet_address order by sha256(address)`.execute(db)
  const readings = rows.flatMap(({ wallet_id, address }) =>
    assets.map((asset) => ({
      ...{ wallet_id, organization_id, address, ...asset },
      balance: BigInt(address[0]! % 2),
      as_of_block: 1,
    })),
  )
  for (const { contract_address } of assets)
    await sql`
      insert into contract (organization_id, network_id, contract_address, contract_type, create_time)
      values (${organization_id}, ${network_id}, ${contract_address}, 'CONTRACT_TYPE_ERC20', ${create_time})`.execute(
      db,
    )
  // Three batches at the same moment, two of which are written in the other way.
  await storeTracked(db, readings.slice(0, 80), create_time)
  await storeReadings(db, readings.slice(80, 130), { network_id, now: create_time })
  await storeReadings(db, readings.slice(130), { network_id, now: create_time })
  // A wallet in which a page must not read all.
  await sql`
    insert into balance (wallet_id, address, asset_id, organization_id, asset_type, contract_address,
      balance, as_of_block, create_time, position, update_time)
    select ${wallet_ids[0]}::uuid, sha256(int4send(i)), ${assets[0]!.asset_id}::uuid,
      ${organization_id}::uuid, ${assets[0]!.asset_type}, ${assets[0]!.contract_address}::bytea, 1, 1,
      ${create_time}::timestamptz, i, ${create_time}::timestamptz
    from generate_series(1000, 20000) i`.execute(db)
  await pool.query('vacuum analyze balance')
}, 60_000)

const nameOf = ({ wallet_id, address, asset_id }: ListedBalance) =>
  `${wallet_id}/${address.toString('hex')}/${asset_id}`

const pagesOf = async (filter: BalanceFilter, limit: number): Promise<ListedBalance[]> => {
  const all: ListedBalance[] = []
  let end: BalancePosition | undefined
  for (;;) {
    const { rows, next } = await listBalances(db, scope, filter, { after: end, limit })
    all.push(...rows)
    if (!next) return all
    end = next
  }
}

describe.each([
  ['all wallets', {}],
  ['a wallet', { wallet_id: wallet_ids[1] }],
  ['a contract', { wallet_id: wallet_ids[1], contract_address: assets[1]!.contract_address }],
  ['what is not zero', { wallet_id: wallet_ids[1], exclude_zero: true }],
] as [string, Partial<BalanceFilter>][])('pages of balances of %s', (_, some) => {
  const filter = { asset_type: 'ASSET_TYPE_ERC20' as const, exclude_zero: false, ...some }

  it('hold each one once, those of one batch and of one moment too', async () => {
    const { rows: whole } = await listBalances(db, scope, filter, { limit: 100_000 })
    const { rows } = await sql<ListedBalance>`
      select wallet_id, address, asset_id from balance
      where ${filter.wallet_id ?? null}::uuid is null or (wallet_id = ${filter.wallet_id ?? null}
        and (${filter.contract_address ?? null}::bytea is null
          or contract_address = ${filter.contract_address ?? null})
        and (balance > 0 or not ${filter.exclude_zero}))`.execute(db)
    expect(whole.map(nameOf).sort()).toEqual(rows.map(nameOf).sort())
    const limit = whole.length > 1_000 ? 997 : 7
    expect((await pagesOf(filter, limit)).map(nameOf)).toEqual(whole.map(nameOf))
  })
})

/** How many balances some work reads. The server includes what a session has not reported yet. */
const countRead = async (work: (trx: Db) => Promise<unknown>): Promise<number> =>
  await db.transaction().execute(async (trx) => {
    const soFar = async () => {
      const { rows } = await sql<{ read: string | null }>`
        select sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::text as read
        from pg_stat_xact_user_tables where relname = 'balance'`.execute(trx)
      return Number(rows[0]?.read)
    }
    const before = await soFar()
    await work(trx)
    return (await soFar()) - before
  })

describe.each([
  ['a wallet', {}],
  ['a contract', { contract_address: assets[0]!.contract_address }],
])('a page of a large wallet by %s', (_, some) => {
  it('reads no more balances than it has, at any depth', async () => {
    const filter = {
      wallet_id: wallet_ids[0]!,
      asset_type: 'ASSET_TYPE_ERC20' as const,
      exclude_zero: false,
      ...some,
    }
    const { rows: whole } = await listBalances(db, scope, filter, { limit: 100_000 })
    for (const after of [undefined, whole[10_000]]) {
      const read = await countRead((trx) => listBalances(trx, scope, filter, { after, limit: 100 }))
      expect(read).toBeGreaterThan(100)
      expect(read).toBeLessThan(210)
    }
  })
})

describe('a page behind many rows that do not pass', () => {
  const other = { organization_id: randomUUIDv7(), network_id: 0 }
  const wallet_id = randomUUIDv7()

  beforeAll(async () => {
    other.network_id = await ensureNetwork(db, { chain: 'c', network: 'other', create_time })
    const { organization_id } = other
    await insertOrganization(db, { organization_id, name: 'p', domain: 'p', create_time })
    await insertWallet(db, { wallet_id, ...other, name: 'w', confirmation: 1, create_time })
    await sql`
      insert into balance (wallet_id, address, asset_id, organization_id, asset_type, contract_address,
        balance, as_of_block, create_time, position, update_time)
      select ${wallet_id}::uuid, sha256(int4send(i)), ${assets[0]!.asset_id}::uuid,
        ${organization_id}::uuid, ${assets[0]!.asset_type}, ${assets[0]!.contract_address}::bytea,
        case when i in (0, 12001, 12002) then i + 1 else 0 end, 1,
        ${create_time}::timestamptz, i, ${create_time}::timestamptz
      from generate_series(0, 12002) i`.execute(db)
    // Their ids come after that of the other one.
    await sql`
      insert into wallet (wallet_id, organization_id, network_id, name, confirmation, address_count,
        create_time, update_time)
      select ('ffffffff-ffff-ffff-ffff-' || lpad(to_hex(i), 12, '0'))::uuid, ${organization_id}::uuid,
        ${other.network_id}::int2, 'w', 1, 0, ${create_time}::timestamptz, ${create_time}::timestamptz
      from generate_series(1, 6000) i`.execute(db)
  }, 60_000)

  it('looks at a bounded number of zeros and of wallets without balances, and misses none', async () => {
    const filter = { asset_type: 'ASSET_TYPE_ERC20' as const, exclude_zero: true }
    const pages: number[][] = []
    let after: BalancePosition | undefined
    do {
      const options = { after, limit: 10 }
      let next: BalancePosition | undefined
      const read = await countRead(async (trx) => {
        const page = await listBalances(trx, other, filter, options)
        pages.push(page.rows.map(({ balance }) => Number(balance)))
        next = page.next
      })
      expect(read).toBeLessThanOrEqual(2 * balanceScan)
      after = next
    } while (after)
    expect(pages).toEqual([[1], [], [12_002, 12_003], []])
  })

  it('a page that is full at once looks no further', async () => {
    const filter = { asset_type: 'ASSET_TYPE_ERC20' as const, exclude_zero: false }
    const read = await countRead((trx) => listBalances(trx, other, filter, { limit: 10 }))
    expect(read).toBeLessThanOrEqual(2 * 11)
  })
})

it('a page ends where its descriptions of items are a mebibyte, and none is missed', async () => {
  const scope = { organization_id: randomUUIDv7(), network_id: 0 }
  scope.network_id = await ensureNetwork(db, { chain: 'c', network: 'items', create_time })
  const { organization_id } = scope
  await insertOrganization(db, { organization_id, name: 'i', domain: 'i', create_time })
  const wallet_id = randomUUIDv7()
  await insertWallet(db, { wallet_id, ...scope, name: 'w', confirmation: 1, create_time })
  await sql`
    with item as (
      insert into asset (asset_id, network_id, asset_type, contract_address, token_id, create_time, token_data)
      select gen_random_uuid(), ${scope.network_id}::int2, 'ASSET_TYPE_ERC721', '\\x01', i,
        ${create_time}::timestamptz, repeat('x', 262144)
      from generate_series(0, 11) i returning *)
    insert into balance (wallet_id, address, asset_id, organization_id, asset_type, contract_address,
      balance, as_of_block, create_time, position, update_time)
    select ${wallet_id}::uuid, '\\x02', asset_id, ${scope.organization_id}::uuid, asset_type,
      contract_address, 1, 1, create_time, token_id::int4, create_time
    from item`.execute(db)
  const filter = { asset_type: 'ASSET_TYPE_ERC721' as const, exclude_zero: true }
  const pages: bigint[][] = []
  let after: BalancePosition | undefined
  do {
    const { rows, next } = await listBalances(db, scope, filter, { after, limit: 100 })
    expect(rows.every(({ token_data }) => token_data?.length === 262_144)).toBe(true)
    pages.push(rows.map(({ token_id }) => token_id))
    after = next
  } while (after)
  expect(pages.map(({ length }) => length)).toEqual([5, 5, 2])
  expect(pages.flat()).toEqual(Array.from({ length: 12 }, (_, at) => BigInt(at)))
  const sums = await listSums(db, scope, filter, { limit: 101 })
  expect(sums.map(({ is_beyond }) => is_beyond).indexOf(true)).toBe(5)
})

it('sums page in the order in which the assets came', async () => {
  const filter = { asset_type: 'ASSET_TYPE_ERC20' as const, exclude_zero: false }
  const whole = await listSums(db, scope, filter, { limit: 10 })
  expect(whole).toHaveLength(2)
  const [first] = await listSums(db, scope, filter, { limit: 1 })
  const rest = await listSums(db, scope, filter, { after: first!, limit: 10 })
  expect([first, ...rest]).toEqual(whole)
})

it('storing what was read asks for each balance by its key, however many there are', async () => {
  const { rows } = await listBalances(
    db,
    scope,
    { wallet_id: wallet_ids[0]!, asset_type: 'ASSET_TYPE_ERC20', exclude_zero: false },
    { limit: 4_000 },
  )
  const readings = rows.map((row) => ({ ...row, organization_id, as_of_block: 2 }))
  const read = await countRead((trx) => storeTracked(trx, readings, create_time))
  expect(read).toBeLessThanOrEqual(2 * readings.length)
})

it.each<Engine>(['embedded', 'system'])(
  'the first balances of all are not looked for in what is being stored, on %s',
  async (engine) => {
    if (!hasEngine(engine)) return
    const { db: empty, pool: first } = await freshDatabase(engine)
    const readings = Array.from({ length: 4_000 }, (_, at) => ({
      ...{ organization_id, ...assets[at % 2]!, balance: 1n, as_of_block: 1 },
      wallet_id: wallet_ids[at % 2]!,
      address: createHash('sha256').update(String(at)).digest(),
    }))
    await empty.transaction().execute(async (trx) => {
      await storeTracked(trx, readings, create_time)
      await sql`select pg_stat_force_next_flush()`.execute(trx)
    })
    const { rows } = await first.query(
      `select (select count(*) from balance)::int as stored,
         heap_blks_hit::int as visits from pg_statio_user_tables where relname = 'balance'`,
    )
    expect(rows[0].stored).toBe(4_000)
    expect(rows[0].visits).toBeLessThan(40_000)
  },
)
