// Statements on wallets, addresses, contracts, assets and tracked tokens. They use `pg`. Every function that
// reads or writes tenant data takes the organization; the look-ups of the tracker take the network, because a
// block concerns all of them.

import { sql } from 'kysely'
import type { QuotaUse } from '../access/quotas.ts'
import type { Db } from '../pg/database.ts'
import type { WalletRow, WalletScope } from './tables.ts'

/** Stores a wallet. */
export const insertWallet = async (
  db: Db,
  wallet: Omit<WalletRow, 'update_time' | 'address_count' | 'confirmed_block' | 'remove_time'>,
): Promise<void> => {
  await db
    .insertInto('wallet')
    .values({ ...wallet, update_time: wallet.create_time, address_count: 0 })
    .execute()
}

/** A wallet of this organization and chain, removed or not. */
export const findWallet = async (
  db: Db,
  { organization_id, network_id }: WalletScope,
  wallet_id: string,
): Promise<WalletRow | undefined> =>
  await db
    .selectFrom('wallet')
    .selectAll()
    .where('wallet_id', '=', wallet_id)
    .where('organization_id', '=', organization_id)
    .where('network_id', '=', network_id)
    .executeTakeFirst()

/** Whether more than one organization has wallets, on whichever network. */
export const hasSeveralOwners = async (db: Db): Promise<boolean> => {
  // Two look-ups in the index: counting would read all wallets.
  const { rows } = await sql`
    select from (select organization_id from wallet order by organization_id limit 1) first,
      (select organization_id from wallet order by organization_id desc limit 1) last
    where first.organization_id <> last.organization_id`.execute(db)
  return rows.length > 0
}

/** Whether a wallet that is not removed has an address; undefined where there is no such wallet. */
export const findWalletWith = async (
  db: Db,
  { organization_id, network_id }: WalletScope,
  { wallet_id, address }: { wallet_id: string; address: Buffer },
): Promise<{ has_address: boolean } | undefined> => {
  const { rows } = await sql<{ has_address: boolean }>`
    select exists (
      select from wallet_address
      where network_id = ${network_id} and organization_id = ${organization_id}
        and address = ${address} and wallet_id = w.wallet_id) as has_address
    from wallet w
    where wallet_id = ${wallet_id} and organization_id = ${organization_id}
      and network_id = ${network_id} and remove_time is null`.execute(db)
  return rows[0]
}

/** One page of wallets in the order of their creation. */
export const listWallets = async (
  db: Db,
  { organization_id, network_id }: WalletScope,
  { after, limit }: { after?: string | undefined; limit: number },
): Promise<WalletRow[]> => {
  // As a range of `wallet_list`. With equal signs, the order is that of the ids alone, by which the planner may pass the wallets
  // of all organizations.
  const own = sql`${organization_id}::uuid, ${network_id}::int2`
  return await db
    .selectFrom('wallet')
    .selectAll()
    .where(
      after
        ? sql<boolean>`(organization_id, network_id, wallet_id) > (${own}, ${after}::uuid)`
        : sql<boolean>`(organization_id, network_id) >= (${own})`,
    )
    .where(sql<boolean>`(organization_id, network_id) <= (${own})`)
    .where('remove_time', 'is', null)
    .orderBy('organization_id')
    .orderBy('network_id')
    .orderBy('wallet_id')
    .limit(limit)
    .execute()
}

/** How many wallets a chain has, or one network of it, of all organizations; removed ones do not count. */
export const countWallets = async (
  db: Db,
  { chain, network }: { chain: string; network?: string | undefined },
): Promise<number> => {
  const all = db
    .selectFrom('wallet')
    .innerJoin('network', 'network.network_id', 'wallet.network_id')
    .select(({ fn }) => fn.countAll<string>().as('count'))
    .where('network.chain', '=', chain)
    .where('wallet.remove_time', 'is', null)
  const { count } = await (network === undefined
    ? all
    : all.where('network.network', '=', network)
  ).executeTakeFirstOrThrow()
  return Number(count)
}

/** Whether a wallet is there, and not removed; it stays so until the transaction ends. */
export const holdWallet = async (trx: Db, wallet_id: string): Promise<boolean> => {
  const { rows } = await sql`
    select 1 from wallet where wallet_id = ${wallet_id} and remove_time is null for share`.execute(
    trx,
  )
  return rows.length > 0
}

/** Gives a wallet another name and says whether it is there. */
export const renameWallet = async (
  db: Db,
  { wallet_id, name, update_time }: Pick<WalletRow, 'wallet_id' | 'name' | 'update_time'>,
): Promise<boolean> => {
  const { numUpdatedRows } = await db
    .updateTable('wallet')
    .set({ name, update_time })
    .where('wallet_id', '=', wallet_id)
    .where('remove_time', 'is', null)
    .executeTakeFirst()
  return numUpdatedRows > 0n
}

/** Marks a wallet as removed and says whether it was there. */
export const markRemoved = async (
  trx: Db,
  wallet_id: string,
  remove_time: Date,
): Promise<boolean> => {
  const { numUpdatedRows } = await trx
    .updateTable('wallet')
    .set({ remove_time, update_time: remove_time, address_count: 0 })
    .where('wallet_id', '=', wallet_id)
    .where('remove_time', 'is', null)
    .executeTakeFirst()
  return numUpdatedRows > 0n
}

/** Keeps addresses and webhooks from being added to a wallet until the transaction ends; false when it was removed. */
export const lockWallet = async (trx: Db, wallet_id: string): Promise<boolean> => {
  const { rows } = await sql`
    select from wallet where wallet_id = ${wallet_id} and remove_time is null for no key update`.execute(
    trx,
  )
  return rows.length > 0
}

/**
 * Notes how many addresses a wallet has gained, or lost where the number is negative, and counts them
 * against the quota: in one statement, because bulk registrations would feel another one. Undefined
 * when the wallet was removed meanwhile.
 */
export const touchWallet = async (
  trx: Db,
  wallet_id: string,
  { gained, update_time }: { gained: number; update_time: Date },
): Promise<QuotaUse | undefined> => {
  // The wallet first, as those do that remove it.
  const { rows } = await sql<QuotaUse>`
    with touched as (
      update wallet set update_time = ${update_time}, address_count = address_count + ${gained}
      where wallet_id = ${wallet_id} and remove_time is null
      returning organization_id)
    insert into quota_use (organization_id, quota_name, used)
    select organization_id, 'QUOTA_ADDRESSES', ${gained}::int8 from touched
    on conflict (organization_id, quota_name) do update set used = quota_use.used + excluded.used
    returning used, (
      select quota_limit from quota q where q.organization_id = quota_use.organization_id
        and q.quota_name = quota_use.quota_name) as quota_limit`.execute(trx)
  return rows[0]
}

/** Forgets confirmations of blocks above a number, which have left the chain. */
export const unconfirmAbove = async (
  trx: Db,
  network_id: number,
  number: number,
): Promise<void> => {
  await sql`
    update wallet set confirmed_block = ${number}
    where network_id = ${network_id} and confirmed_block > ${number}`.execute(trx)
}
