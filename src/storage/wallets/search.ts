// The search of the console. Every statement is bounded by the organization and by networks that the caller may read, so
// that a search never shows, or times, what belongs to others.

import { sql } from 'kysely'
import type { Db } from '../pg/database.ts'

/** Where something of an organization was found. */
export type Found = { network_id: number; id: string; title: string; wallet_id: string | null }

type Searched = { organization_id: string; network_ids: readonly number[]; limit: number }

/** Wallets by a part of their name. */
export const findWalletsByName = async (
  db: Db,
  { organization_id, network_ids, limit }: Searched,
  name: string,
): Promise<Found[]> => {
  // Scans the wallets of one organization; the quota bounds their number. Ordered outside: for an order of the whole, the
  // wallets of all organizations may be read from the newest one.
  const { rows } = await sql<Found>`
    select network_id, wallet_id::text as id, name as title, wallet_id::text as wallet_id from (
      select network_id, wallet_id, name from wallet
      where organization_id = ${organization_id} and network_id = any(${network_ids as number[]}::int2[])
        and remove_time is null and position(lower(${name}) in lower(name)) > 0 offset 0) w
    order by w.wallet_id desc limit ${limit}`.execute(db)
  return rows
}

/** A wallet or a webhook by its id. */
export const findById = async (
  db: Db,
  { organization_id, network_ids }: Searched,
  id: string,
): Promise<(Found & { kind: 'wallet' | 'webhook' })[]> => {
  const mine = sql`organization_id = ${organization_id}
    and network_id = any(${network_ids as number[]}::int2[])`
  // Both kinds in one statement: an id names one of them, and the caller cannot know which.
  const { rows } = await sql<Found & { kind: 'wallet' | 'webhook' }>`
    select 'wallet' as kind, network_id, wallet_id::text as id, name as title,
      wallet_id::text as wallet_id
    from wallet where wallet_id = ${id}::uuid and ${mine} and remove_time is null
    union all
    select 'webhook', network_id, webhook_id::text, webhook_endpoint, wallet_id::text
    from webhook where webhook_id = ${id}::uuid and ${mine} and sink is null`.execute(db)
  return rows
}

/** The wallets that have an address, given in the form of each network. */
export const findAddresses = async (
  db: Db,
  organization_id: string,
  addresses: readonly { network_id: number; address: Buffer }[],
): Promise<(Omit<Found, 'id'> & { address: Buffer })[]> => {
  // Pairs of network and address in one statement: the same text may be an address on several networks.
  const { rows } = await sql<Omit<Found, 'id'> & { address: Buffer }>`
    select a.network_id, a.address, w.name as title, w.wallet_id::text as wallet_id
    from unnest(${addresses.map(({ network_id }) => network_id)}::int2[],
      ${addresses.map(({ address }) => address)}::bytea[]) q (network_id, address)
    join wallet_address a on a.network_id = q.network_id and a.address = q.address
      and a.organization_id = ${organization_id}
    join wallet w on w.wallet_id = a.wallet_id`.execute(db)
  return rows
}

/** The networks on which the organization has transfers of a transaction, with one of its wallets. */
export const findTransactions = async (
  db: Db,
  organization_id: string,
  hashes: readonly { network_id: number; hash: Buffer }[],
): Promise<{ network_id: number; hash: Buffer; wallet_id: string; title: string }[]> => {
  // One wallet per network is enough to open the transaction; the page lists all its transfers.
  const { rows } = await sql<{
    network_id: number
    hash: Buffer
    wallet_id: string
    title: string
  }>`
    with found as materialized (
      select distinct on (q.network_id) q.network_id, q.hash, t.wallet_id
      from unnest(${hashes.map(({ network_id }) => network_id)}::int2[],
        ${hashes.map(({ hash }) => hash)}::bytea[]) q (network_id, hash)
      join transfer t on t.transaction_hash = q.hash and t.network_id = q.network_id
        and t.organization_id = ${organization_id}
      order by q.network_id)
    select f.network_id, f.hash, f.wallet_id::text as wallet_id, w.name as title
    from found f join wallet w on w.wallet_id = f.wallet_id
    order by f.network_id`.execute(db)
  return rows
}

/** Managed transactions by their id or hash. */
export const findManagedTransactions = async (
  db: Db,
  { organization_id, network_ids, limit }: Searched,
  { id, hashes }: { id: string; hashes: readonly Buffer[] },
): Promise<Found[]> => {
  const { rows } = await sql<Found>`
    select network_id, transaction_id as id, transaction_state as title, wallet_id::text as wallet_id
    from managed_transaction
    where organization_id = ${organization_id} and network_id = any(${network_ids as number[]}::int2[])
      and (transaction_id = ${id} or transaction_hash = any(${hashes as Buffer[]}::bytea[]))
    order by create_time desc limit ${limit}`.execute(db)
  return rows
}
