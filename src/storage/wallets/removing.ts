// The removal of addresses, in pages: an address may have any number of balances, also of tokens that it never had, and blocks of
// all organizations wait for a page. The rows of an address go first and the address last: a call that breaks off can then be
// repeated, and no other wallet gets the address before. Blocks may add rows between two pages. So an address goes only in a
// page that has looked at all of it, and such a page may be twice as large each time that it was not enough.

import { sql } from 'kysely'
import { lowestId } from '../../lib/ids.ts'
import type { Db } from '../pg/database.ts'
import type { WalletScope } from './tables.ts'

// Balances before the work on them: what is left of an address that stays after all may be missing, but is never wrong.
const dependent = ['balance', 'balance_pending', 'balance_change', 'token_import'] as const

/** Where a removal continues. */
export type RemovalRest = {
  /** The first address of which something is left. */
  address: Buffer
  /** Where it has more rows than a page: the table and the asset that the page ended with. */
  from?: { table: (typeof dependent)[number]; asset_id: string } | undefined
  /** How often all of its rows were removed. */
  passes: number
}

// A page of a thousand times the rows, if ever. Before that, blocks would have to add more between any two pages.
const mostPasses = 10

/**
 * Takes a page of addresses out of a wallet with their balances and waiting work: at most so many rows of each table. Says how
 * many addresses went, and where to continue if any are left. Their transfers stay. The cursor must be locked.
 */
export const removeAddresses = async (
  trx: Db,
  { organization_id, network_id }: WalletScope,
  {
    wallet_id,
    addresses,
    rest,
    limit,
  }: {
    wallet_id: string
    /** In the order of their bytes. */
    addresses: readonly Buffer[]
    rest: RemovalRest | undefined
    limit: number
  },
): Promise<{ count: number; rest: RemovalRest | undefined }> => {
  const asked = addresses.filter((one) => !rest || Buffer.compare(one, rest.address) >= 0)
  // Before their rows: who holds an address may still write some, which the statements behind this one then see. In the order
  // of the key, as all writers of addresses, and as a range of it, for the planner.
  const key = sql`(${network_id}::int2, t.address, ${organization_id}::uuid)`
  const { rows } = await sql<{ address: Buffer; place: string }>`
    select t.address, w.place::text
    from unnest(${rest?.from ? [rest.address] : asked}::bytea[]) t (address)
    cross join lateral (
      select ctid as place from wallet_address
      where (network_id, address, organization_id) >= ${key} and (network_id, address, organization_id) <= ${key}
        and wallet_id is not distinct from ${wallet_id}::uuid
      order by network_id, address, organization_id limit 1 for update) w`.execute(trx)
  const held = rows.map(({ address }) => address)
  const [first] = held
  // Another call has removed it.
  if (!first) return { count: 0, rest: rest?.from && { address: rest.address, passes: 0 } }
  const { from, passes = 0 } = rest?.address.equals(first) ? rest : {}
  const most = limit * 2 ** Math.min(passes, mostPasses)
  let empty = held
  let end: RemovalRest['from']
  for (const table of dependent.slice(from ? dependent.indexOf(from.table) : 0)) {
    const after = table === from?.table ? from.asset_id : undefined
    const page = { network_id, wallet_id, addresses: empty, after, limit: most }
    const { found, removed, last } = await deletePage(trx, table, page)
    // Someone has changed a row meanwhile, so that it was left: all are looked at again.
    if (removed < found) return { count: 0, rest: { address: first, passes } }
    if (found < most) continue
    empty = empty.filter((one) => Buffer.compare(one, last!.address) < 0)
    if (empty.length > 0) continue
    end = { table, asset_id: last!.asset_id }
    break
  }
  if (end) return { count: 0, rest: { address: first, from: end, passes } }
  // It was looked at from there on only.
  if (from) return { count: 0, rest: { address: first, passes: passes + 1 } }
  // Places are stable while the rows are locked.
  const places = rows.slice(0, empty.length).map(({ place }) => place)
  await sql`delete from wallet_address where ctid = any(${places}::tid[])`.execute(trx)
  const next = held[empty.length]
  return { count: empty.length, rest: next && { address: next, passes: 0 } }
}

type Found = { found: number; removed: number; last?: { address: Buffer; asset_id: string } }

/** Deletes the first rows of some addresses, in the order of addresses and assets. */
async function deletePage(
  trx: Db,
  table: (typeof dependent)[number],
  page: {
    network_id: number
    wallet_id: string
    addresses: readonly Buffer[]
    after: string | undefined
    limit: number
  },
): Promise<Found> {
  const { network_id, wallet_id, addresses, after, limit } = page
  // As a range of the key of each table, in its order. With an equal sign, also beside the range, the planner may read all that
  // the wallet has for each address, depending on the statistics.
  const wallet = { key: sql`wallet_id`, value: sql`${wallet_id}::uuid` }
  const address = { key: sql`address`, value: sql`t.address` }
  const network = { key: sql`network_id`, value: sql`${network_id}::int2` }
  const begins = { balance_change: [wallet, address], token_import: [network, address] }
  const leading = table in begins ? begins[table as keyof typeof begins] : [address, wallet]
  const keys = sql.join(leading.map(({ key }) => key))
  const values = sql.join(leading.map(({ value }) => value))
  const { rows } = await sql<{
    found: number
    removed: number
    address: Buffer
    asset_id: string
  }>`
    with page as materialized (
      select b.place, t.address, t.number, b.asset_id
      from unnest(${addresses as Buffer[]}::bytea[]) with ordinality t (address, number)
      cross join lateral (
        select ctid as place, asset_id from ${sql.table(table)}
        where (${keys}, asset_id) >= (${values}, ${after ?? lowestId}::uuid) and (${keys}) <= (${values})
          and wallet_id is not distinct from ${wallet_id}::uuid
        order by ${keys}, asset_id limit ${limit}) b
      limit ${limit}),
    gone as (
      delete from ${sql.table(table)} where ctid = any(array(select place from page)) returning 1)
    select address, asset_id, (select count(*)::int4 from page) as found,
      (select count(*)::int4 from gone) as removed
    from page order by number desc, asset_id desc limit 1`.execute(trx)
  const [row] = rows
  return row ? { ...row, last: row } : { found: 0, removed: 0 }
}
