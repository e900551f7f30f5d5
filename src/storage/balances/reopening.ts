// Reading all balances of a network again after a gap, or after a rollback to a block that is not stored. The transaction
// that passes the gap or goes back stores one row; the walk goes page by page in later transactions, so that the tracker
// does not wait for all balances of the network at once.

import { sql } from 'kysely'
import type { RowOf } from '../pg/columns.ts'
import type { Db } from '../pg/database.ts'
import type { walletTables } from '../wallets/tables.ts'
import { deepConfirmation } from './changes.ts'

/**
 * Lets every balance of a chain be read again at this block or later, because those before it were not seen. With
 * `lower_to`, balances of later blocks than that are lowered to it first: their blocks are gone.
 */
export const reopenAllBalances = async (
  trx: Db,
  {
    network_id,
    block_number,
    lower_to = null,
  }: { network_id: number; block_number: number; lower_to?: number | null },
): Promise<void> => {
  // A second gap restarts the walk at the later block, which covers the first one too. What is still to be lowered
  // stays so.
  await sql`
    insert into balance_reopening as o (network_id, block_number, lower_to)
    values (${network_id}, ${block_number}, ${lower_to})
    on conflict (network_id) do update set block_number = excluded.block_number,
      lower_to = least(o.lower_to, excluded.lower_to),
      wallet_id = null, address = null, asset_id = null`.execute(trx)
}

/** Whether balances are still to be read again because of a gap. */
export const isReopening = async (trx: Db, network_id: number): Promise<boolean> => {
  const { rows } = await sql`
    select 1 from balance_reopening where network_id = ${network_id}`.execute(trx)
  return rows.length > 0
}

/** Lets what is still to be read again be read at an earlier block, because others left the chain. */
export const lowerReopening = async (
  trx: Db,
  network_id: number,
  number: number,
): Promise<void> => {
  await sql`
    update balance_reopening set block_number = ${number}
    where network_id = ${network_id} and block_number > ${number}`.execute(trx)
}

type ReopeningRow = RowOf<typeof walletTables.balance_reopening>

/** The next balances of a walk, `limit` of them, as `page`; `moved` stores how far it is then. */
const nextPage = (
  { network_id, wallet_id, address, asset_id }: ReopeningRow,
  { assets, limit }: { assets: ReturnType<typeof sql>; limit: number },
) => {
  // As parameters, which the index takes as its start: joined, every page walked all addresses before its own.
  const beyond =
    wallet_id === null
      ? sql``
      : sql`and (t.wallet_id, t.address) >= (${wallet_id}::uuid, ${address}::bytea)
          and (t.wallet_id, t.address, b.asset_id) >
            (${wallet_id}::uuid, ${address}::bytea, ${asset_id}::uuid)`
  // Along the addresses of the wallets: the key of the balances begins with the address.
  return sql`
    page as materialized (
      select t.wallet_id, t.address, b.asset_id, t.organization_id
      from wallet w join wallet_address t on t.wallet_id = w.wallet_id
      cross join lateral (${assets}) b
      where w.network_id = ${network_id} ${beyond}
      order by t.wallet_id, t.address, b.asset_id limit ${limit}),
    last as (
      select * from page order by wallet_id desc, address desc, asset_id desc limit 1),
    moved as (
      update balance_reopening o set wallet_id = l.wallet_id, address = l.address,
        asset_id = l.asset_id
      from last l where o.network_id = ${network_id})`
}

const ofAddress = sql`select asset_id from balance where address = t.address and wallet_id = t.wallet_id`

/**
 * Lowers the next balances whose blocks are gone, and says how many it looked at; 0 when that is done, or there is
 * nothing to lower. Otherwise a reading of the new blocks would lose against a balance of a later block that is gone. Each
 * stays what is shown until it is read, but net changes are not added to it: it holds those of the blocks that are stored again.
 */
export const lowerPage = async (
  trx: Db,
  { network_id, limit, now }: { network_id: number; limit: number; now: Date },
): Promise<number> => {
  const { rows: open } = await sql<ReopeningRow>`
    select * from balance_reopening
    where network_id = ${network_id} and lower_to is not null for update`.execute(trx)
  const [reopening] = open
  if (!reopening) return 0
  const { lower_to } = reopening
  const { rows } = await sql<{ count: number }>`
    with ${nextPage(reopening, { assets: ofAddress, limit })},
    held as materialized (
      select b.wallet_id, b.address, b.asset_id from page p join balance b
        on b.address = p.address and b.wallet_id = p.wallet_id and b.asset_id = p.asset_id
      where b.as_of_block > ${lower_to}
      order by b.wallet_id, b.address, b.asset_id for update of b),
    lowered as (
      update balance b set as_of_block = ${lower_to}, is_stale = true, update_time = ${now} from held h
      where b.address = h.address and b.wallet_id = h.wallet_id and b.asset_id = h.asset_id)
    select count(*)::int8 as count from page`.execute(trx)
  const count = rows[0]!.count
  if (count < limit)
    await sql`
      update balance_reopening set lower_to = null, wallet_id = null, address = null, asset_id = null
      where network_id = ${network_id}`.execute(trx)
  return count
}

/** Whether balances are still to be lowered because their blocks are gone. */
export const isLowering = async (db: Db, network_id: number): Promise<boolean> => {
  const { rows } = await sql`
    select 1 from balance_reopening
    where network_id = ${network_id} and lower_to is not null`.execute(db)
  return rows.length > 0
}

/**
 * Makes work of the next balances that are to be read again, and says how many these are; 0 when there
 * are none, or the cursor has not reached the block. The caller must hold the cursor's lock.
 */
export const reopenPage = async (
  trx: Db,
  { network_id, head, limit }: { network_id: number; head: number; limit: number },
): Promise<number> => {
  // Once the block has the confirmations of all wallets but the deep ones: if work became due later than
  // it is made, all pages would become due at once, and before newer work.
  const { rows: open } = await sql<ReopeningRow>`
    select * from balance_reopening
    where network_id = ${network_id} and lower_to is null and block_number <= ${head}
      and block_number + (
        select coalesce(greatest(max(confirmation), 1), 1) from wallet
        where network_id = ${network_id} and remove_time is null
          and confirmation <= ${deepConfirmation}) - 1 <= ${head}
    for update`.execute(trx)
  const [reopening] = open
  if (!reopening) return 0
  const { block_number } = reopening
  // Readings that wait for confirmation lack the same changes. They stay: each is the balance of its own block once that
  // is confirmed.
  const assets = sql`
    ${ofAddress}
    union
    select asset_id from balance_pending where address = t.address and wallet_id = t.wallet_id
      and block_number < ${block_number}`
  const { rows } = await sql<{ count: number }>`
    with ${nextPage(reopening, { assets, limit })},
    made as (
      insert into balance_change (wallet_id, address, asset_id, block_number, organization_id,
        network_id, due_block, ahead)
      select wallet_id, address, asset_id, ${block_number}::int8, organization_id,
        ${network_id}::int2, ${head}::int8, true
      from page
      on conflict (wallet_id, address, asset_id, block_number) do update
        set delta = null, due_block = excluded.due_block, ahead = true)
    select count(*)::int8 as count from page`.execute(trx)
  const count = rows[0]!.count
  if (count < limit)
    await sql`delete from balance_reopening where network_id = ${network_id}`.execute(trx)
  return count
}
