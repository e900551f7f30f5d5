import { randomUUIDv7 } from 'node:crypto'
import { type CompiledQuery, sql } from 'kysely'
import { beforeAll, describe, expect, it } from 'vitest'
import { isOnCitus } from '../../../test/helpers/citus.ts'
import { freshDatabase } from '../../../test/helpers/database.ts'
import { insertOrganization } from '../access/organizations.ts'
import type { Db } from '../pg/database.ts'
import { ensurePartitionsBetween } from '../pg/partitions.ts'
import { ensureNetwork } from '../tracking/networks.ts'
import { insertWallet } from '../wallets/wallets.ts'
import { listWalletTransfers, type TransferFilter, type TransferPosition } from './transfers.ts'

const { db, pool } = await freshDatabase()
const begin = new Date('2026-01-01T00:00:00Z')
const organization_id = randomUUIDv7()
const wallet_id = randomUUIDv7()
const address = Buffer.alloc(20, 7)
const pageSize = 10

beforeAll(async () => {
  const network_id = await ensureNetwork(db, { chain: 'c', network: 'mainnet', create_time: begin })
  const create_time = begin
  await insertOrganization(db, { organization_id, name: 'o', domain: 'o', create_time })
  for (const id of [wallet_id, ...Array.from({ length: 50 }, () => randomUUIDv7())]) {
    const wallet = { organization_id, network_id, name: 'w', confirmation: 1, create_time }
    await insertWallet(db, { wallet_id: id, ...wallet })
  }
  const asset_id = randomUUIDv7()
  await sql`
    insert into asset (asset_id, network_id, asset_type, contract_address, token_id, create_time)
    values (${asset_id}, ${network_id}, 'ASSET_TYPE_C', '', 0, ${begin})`.execute(db)
  await ensurePartitionsBetween(db, begin, new Date('2026-03-20T00:00:00Z'))
  // Half of them are of one wallet, and half of those of one address; one in four is outgoing.
  await sql`
    insert into transfer (wallet_id, block_time, block_number, ordinal, side, organization_id,
      network_id, address, transaction_hash, asset_id, "from", "to", value, transaction_fee,
      transfer_state)
    select w.wallet_id, ${begin}::timestamptz + i * interval '2 minutes', i, 0,
      case when i % 4 = 0 then 0 else 1 end, ${organization_id}::uuid, ${network_id}::int2,
      case when i % 2 = 0 then ${address}::bytea else sha256(int4send(i)) end, sha256(int4send(i)),
      ${asset_id}::uuid, '\\x01', '\\x02', i, 21000, 'TRANSFER_STATE_SUCCESS'
    from generate_series(1, 60000) i
    join (select wallet_id, row_number() over () - 1 as place from wallet
      where wallet_id <> ${wallet_id}) o on o.place = i % 50
    cross join lateral (
      select case when i % 3 > 0 then ${wallet_id}::uuid else o.wallet_id end as wallet_id) w`.execute(
    db,
  )
  // Outside of a transaction block, as the server's own does it.
  await pool.query('analyze')
}, 120_000)

type Plan = {
  'Node Type': string
  Alias?: string
  'Index Cond'?: string
  'Actual Rows': number
  'Actual Loops': number
  'Rows Removed by Filter'?: number
  Plans?: Plan[]
}

const nodesOf = (plan: Plan): Plan[] => [plan, ...(plan.Plans ?? []).flatMap(nodesOf)]

const isLimit = (plan: Plan): boolean =>
  plan['Node Type'] === 'Limit' && nodesOf(plan).some(({ Alias }) => Alias?.startsWith('t'))

/** Runs a query and gives its rows and the plan by which the server ran it. */
const explain = async (filter: TransferFilter, after?: TransferPosition) => {
  let seen: CompiledQuery | undefined
  const executor = db.getExecutor()
  const spy = new Proxy(db, {
    get: (target, key) =>
      key !== 'getExecutor'
        ? Reflect.get(target, key)
        : () =>
            new Proxy(executor, {
              get: (inner, name) => {
                const value = Reflect.get(inner, name)
                if (name !== 'executeQuery')
                  return typeof value === 'function' ? value.bind(inner) : value
                return (compiled: CompiledQuery) => {
                  seen = compiled
                  return inner.executeQuery(compiled)
                }
              },
            }),
  }) as Db
  const scope = { organization_id, network_id: 1 }
  const wanted = { after, limit: pageSize + 1 }
  const rows = await listWalletTransfers(spy, scope, { ...filter, wallet_id }, wanted)
  expect(rows).toHaveLength(pageSize + 1)
  const { sql: text, parameters } = seen!
  const answer = await pool.query(`explain (analyze, format json) ${text}`, [...parameters])
  // What stands above only adds the names of assets to the rows of the page.
  const page = nodesOf(answer.rows[0]['QUERY PLAN'][0].Plan).find(isLimit)!
  return { rows, nodes: nodesOf(page) }
}

const positionAt = async (offset: number, filter: TransferFilter): Promise<TransferPosition> => {
  const { rows } = await pool.query(
    `select block_time, block_number, ordinal, side from transfer
     where wallet_id = $1 and ($2::bytea is null or address = $2)
       and ($4::timestamptz is null or block_time <= $4)
     order by block_time desc, block_number desc, ordinal desc, side desc offset $3 limit 1`,
    [wallet_id, filter.address ?? null, offset - 1, filter.to_time ?? null],
  )
  const [{ block_number, ordinal, ...row }] = rows
  return { ...row, block_number: Number(block_number), ordinal: Number(ordinal) }
}

// The plan of Citus is another one.
describe.skipIf(isOnCitus).each([
  ['a wallet', {}],
  ['an address of a wallet', { address }],
  ['a wallet up to a time', { to_time: new Date('2026-03-01T00:00:00Z') }],
] as [string, TransferFilter][])('the plan of ListTransfers of %s', (_, filter) => {
  it('is a range of one index without a sort, on the first page and on page 1,000 alike', async () => {
    const first = await explain(filter)
    const deep = await explain(filter, await positionAt(999 * pageSize, filter))
    expect(deep.rows[0]!.block_time.getTime()).toBeLessThan(first.rows[0]!.block_time.getTime())
    for (const { nodes } of [first, deep]) {
      const kinds = nodes.map((node) => `${node['Node Type']} ${node.Alias ?? ''}`.trim())
      expect(kinds.filter((kind) => /Sort|Seq Scan|Bitmap|Hash/.test(kind))).toEqual([])
      const scans = nodes.filter(({ Alias }) => /^t(_\d+)?$/.test(Alias ?? ''))
      expect(scans.length).toBeGreaterThan(0)
      for (const scan of scans) {
        expect(scan['Node Type']).toBe('Index Scan')
        expect(scan['Index Cond']).toContain('wallet_id')
      }
      // No more rows are touched than the page has, wherever it stands.
      const touched = scans.map(
        (scan) =>
          (scan['Actual Rows'] + (scan['Rows Removed by Filter'] ?? 0)) * scan['Actual Loops'],
      )
      expect(touched.reduce((sum, count) => sum + count, 0)).toBeLessThanOrEqual(pageSize + 2)
    }
  })
})

it('a page of transfers ends where its descriptions of items are a mebibyte', async () => {
  const scope = { organization_id, network_id: 1 }
  await db.transaction().execute(async (trx) => {
    await sql`update asset set token_data = repeat('x', 262144)`.execute(trx)
    const rows = await listWalletTransfers(trx, scope, { wallet_id }, { limit: 101 })
    expect(rows).toHaveLength(101)
    expect(rows.findIndex(({ is_beyond }) => is_beyond)).toBe(5)
    const lengths = rows.map(({ token_data }) => token_data?.length ?? 0)
    expect(lengths.reduce((sum, length) => sum + length)).toBe(5 * 262_144)
    await sql`update asset set token_data = null`.execute(trx)
  })
})
