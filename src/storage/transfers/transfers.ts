// Statements on transfers, which are partitioned by month. They use `pg`. Pages are keyset pages in the order
// of the chain.

import { type RawBuilder, sql } from 'kysely'
import type { AssetKey } from '../../contract/records/assets.ts'
import { type BulkRow, insertNewRows, insertRows } from '../pg/bulk.ts'
import type { Db } from '../pg/database.ts'
import { type AssetInfo, boundedDescriptions } from '../wallets/assets.ts'
import type { TransferRow, WalletScope } from '../wallets/tables.ts'

/** A transfer as it is listed, with its asset and the confirmation of its wallet. */
export type ListedTransfer = TransferRow &
  AssetKey &
  AssetInfo & {
    token_uri: string | null
    token_data: string | null
    /** The text is there, but too long for a notification. */
    token_uri_omitted?: boolean | null
    token_data_omitted?: boolean | null
    confirmation: number
    confirmed_block: number | null
    /** Whether both ends are in what the list is about: an address, a wallet or an organization. */
    is_internal?: boolean
    /** The page ends before it, and its descriptions are left out. */
    is_beyond?: boolean
  }

/** The position of the next page: the last transfer returned. */
export type TransferPosition = Pick<TransferRow, 'block_time' | 'block_number' | 'ordinal' | 'side'>

/** Which transfers are wanted. */
export type TransferFilter = {
  wallet_id?: string | undefined
  address?: Buffer | undefined
  transaction_hash?: Buffer | undefined
  asset_id?: string | undefined
  /** Both ends included. */
  from_time?: Date | undefined
  to_time?: Date | undefined
}

type Page = { after?: TransferPosition | undefined; limit: number }

const all = (conditions: (RawBuilder<unknown> | undefined)[]): RawBuilder<unknown> =>
  sql.join(
    conditions.filter((condition) => condition !== undefined),
    sql` and `,
  )

const filterOf = (filter: TransferFilter) => [
  filter.wallet_id ? sql`t.wallet_id = ${filter.wallet_id}` : undefined,
  filter.address && sql`t.address = ${filter.address}`,
  filter.transaction_hash &&
    sql`(t.transaction_hash = ${filter.transaction_hash}
      or t.external_hash = ${filter.transaction_hash})`,
  filter.asset_id === undefined ? undefined : sql`t.asset_id = ${filter.asset_id}`,
  filter.from_time && sql`t.block_time >= ${filter.from_time}`,
  filter.to_time && sql`t.block_time <= ${filter.to_time}`,
]

const newestFirst = sql`t.block_time desc, t.block_number desc, t.ordinal desc, t.side desc`

/**
 * Adds to a page what other tables have. The page is a part of its own: on Citus it comes from the machine of the organization,
 * and the other tables are on the coordinator.
 */
const withAsset = (
  organization_id: string,
  page: RawBuilder<unknown>,
  /** What the row of the other end has in common with this one, beside the movement. */
  sameScope: RawBuilder<unknown>,
) => sql<ListedTransfer>`
  with page as materialized (
    select t.*, exists (
      select 1 from transfer o
      where o.block_time = t.block_time and o.block_number = t.block_number and o.ordinal = t.ordinal
        and o.side = 1 - t.side and o.organization_id = ${organization_id} and ${sameScope}) as is_internal
    from (${page}) t)
  select t.*, a.asset_type, a.contract_address, a.token_id, a.name, a.symbol, a.decimals,
    ${boundedDescriptions(newestFirst)}, w.confirmation, w.confirmed_block
  from page t join asset a on a.asset_id = t.asset_id join wallet w on w.wallet_id = t.wallet_id
  order by ${newestFirst}`

/**
 * One page of a wallet's transfers, newest first. A movement between two addresses of the wallet has
 * two rows and is one record: the outgoing one, unless only the receiving address is asked for.
 */
export const listWalletTransfers = async (
  db: Db,
  // The wallet is of one chain: naming that too would only tempt the planner to another index.
  { organization_id }: WalletScope,
  filter: TransferFilter & { wallet_id: string },
  { after, limit }: Page,
): Promise<ListedTransfer[]> => {
  const where = all([
    sql`t.organization_id = ${organization_id}`,
    ...filterOf(filter),
    // The first line alone says it; the second lets the planner leave out newer months.
    after &&
      sql`(t.block_time, t.block_number, t.ordinal, t.side)
        < (${after.block_time}::timestamptz, ${after.block_number}::int8, ${after.ordinal}::int8,
          ${after.side}::int2) and t.block_time <= ${after.block_time}::timestamptz`,
    // Asked row by row: as a join it would make the planner sort the whole wallet for one page, and
    // with `not exists` read every outgoing row of all months to keep them in a hash. Of a coalesce it
    // expects half to be true, and so goes along the key.
    sql`(t.side = 0 or coalesce((
      select false from transfer o
      where o.side = 0 and o.organization_id = ${organization_id} and o.wallet_id = t.wallet_id
        and o.block_time = t.block_time and o.block_number = t.block_number and o.ordinal = t.ordinal
        ${filter.address ? sql`and o.address = t.address` : sql``} limit 1), true))`,
  ])
  const { rows } = await withAsset(
    organization_id,
    sql`
    select t.* from transfer t where ${where}
    order by t.block_time desc, t.block_number desc, t.ordinal desc, t.side desc
    limit ${limit}`,
    filter.address
      ? sql`o.wallet_id = t.wallet_id and o.address = t.address`
      : sql`o.wallet_id = t.wallet_id`,
  ).execute(db)
  return rows
}

/** One page of the transfers of a transaction in all wallets of the organization, each once. */
export const listTransactionTransfers = async (
  db: Db,
  { organization_id, network_id }: WalletScope,
  filter: TransferFilter & { transaction_hash: Buffer },
  { after, limit }: Page,
): Promise<ListedTransfer[]> => {
  const where = all([
    sql`t.organization_id = ${organization_id} and t.network_id = ${network_id}`,
    ...filterOf(filter),
    after &&
      sql`(t.block_time, t.block_number, t.ordinal)
        < (${after.block_time}::timestamptz, ${after.block_number}::int8, ${after.ordinal}::int8)`,
  ])
  const { rows } = await withAsset(
    organization_id,
    sql`
    select distinct on (t.block_time, t.block_number, t.ordinal) t.* from transfer t where ${where}
    order by t.block_time desc, t.block_number desc, t.ordinal desc, t.side
    limit ${limit}`,
    sql`o.transaction_hash = t.transaction_hash and o.network_id = t.network_id`,
  ).execute(db)
  return rows
}

/** Stores transfers and says how many are new. */
export const insertTransfers = async (
  trx: Db,
  transfers: readonly BulkRow<'transfer'>[],
): Promise<number> => await insertRows(trx, 'transfer', transfers)

/** The same for many transfers of blocks that were not stored before. */
export const insertNewTransfers = async (
  trx: Db,
  transfers: readonly BulkRow<'transfer'>[],
): Promise<number> => await insertNewRows(trx, 'transfer', transfers)

/** Stores transfers and gives those that are new. */
export const insertMissingTransfers = async (
  trx: Db,
  transfers: readonly BulkRow<'transfer'>[],
): Promise<BulkRow<'transfer'>[]> => {
  if (transfers.length === 0) return []
  const network_ids = [...new Set(transfers.map(({ network_id }) => network_id))]
  const numbers = [...new Set(transfers.map(({ block_number }) => block_number))]
  const organizations = [...new Set(transfers.map(({ organization_id }) => organization_id))]
  type Key = Pick<TransferRow, 'wallet_id' | 'block_number' | 'ordinal' | 'side'>
  const nameOf = ({ wallet_id, block_number, ordinal, side }: Key) =>
    `${wallet_id}/${block_number}/${ordinal}/${side}`
  const { rows } = await sql<Key>`
    select wallet_id, block_number, ordinal, side from transfer
    where network_id = any(${network_ids}::int2[])
      and block_number = any(${numbers}::int8[])
      and organization_id = any(${organizations}::uuid[])`.execute(trx)
  const known = new Set(rows.map(nameOf))
  const added = transfers.filter((transfer) => !known.has(nameOf(transfer)))
  await insertRows(trx, 'transfer', added)
  return added
}

/** Whether a network has transfers of blocks from a number up to the one before another. */
export const hasTransfersBetween = async (
  db: Db,
  network_id: number,
  { from, before }: { from: number; before: number },
): Promise<boolean> => {
  const { rows } = await sql`
    select from transfer where network_id = ${network_id}
      and block_number >= ${from} and block_number < ${before} limit 1`.execute(db)
  return rows.length > 0
}

/** Drops the transfers of blocks above a number. */
export const deleteTransfersAbove = async (
  trx: Db,
  network_id: number,
  number: number,
): Promise<number> => {
  const { numAffectedRows } = await sql`
    delete from transfer where network_id = ${network_id} and block_number > ${number}`.execute(trx)
  return Number(numAffectedRows ?? 0n)
}

/** Adds later words to the records of messages (T: it bounced) and gives those that changed. */
export const updateTransfers = async (
  trx: Db,
  network_id: number,
  updates: readonly { transfer_hash: Buffer; detail: object }[],
): Promise<TransferRow[]> => {
  if (updates.length === 0) return []
  const hashes = updates.map(({ transfer_hash }) => transfer_hash)
  const details = updates.map(({ detail }) => JSON.stringify(detail))
  // The outgoing record only: the other end has a record of its own, with its own outcome.
  const { rows } = await sql<TransferRow>`
    update transfer t set detail = coalesce(t.detail, '{}') || u.detail
    from unnest(${hashes}::bytea[], ${details}::text[]::jsonb[]) u (transfer_hash, detail)
    where t.transfer_hash = u.transfer_hash and t.network_id = ${network_id} and t.side = 0
      and not coalesce(t.detail, '{}') @> u.detail
    returning t.*`.execute(trx)
  return rows
}
