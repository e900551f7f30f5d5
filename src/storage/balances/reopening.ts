// Reading all balances of a network again after a gap. The transaction that passes the gap stores one row; the walk goes
// page by page in later transactions, so that the tracker does not wait for all balances of the network at once.

import { sql } from 'kysely'
import type { Db } from '../pg/database.ts'
import { deepConfirmation } from './changes.ts'

/** Lets every balance of a chain be read again at this block or later, because those before it were not seen. */
export const reopenAllBalances = async (
  trx: Db,
  { network_id, block_number }: { network_id: number; block_number: number },
): Promise<void> => {
  // A second gap restarts the walk at the later block, which covers the first one too.
  await sql`
    insert into balance_reopening (network_id, block_number) values (${network_id}, ${block_number})
    on conflict (network_id) do update set block_number = excluded.block_number,
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
  const { rows: open } = await sql<{ block_number: number; has_begun: boolean }>`
    select block_number, wallet_id is not null as has_begun from balance_reopening
    where network_id = ${network_id} and block_number <= ${head}
      and block_number + (
        select coalesce(greatest(max(confirmation), 1), 1) from wallet
        where network_id = ${network_id} and remove_time is null
          and confirmation <= ${deepConfirmation}) - 1 <= ${head}
    for update`.execute(trx)
  const [reopening] = open
  if (!reopening) return 0
  const beyond = reopening.has_begun
    ? sql`and (t.wallet_id, t.address) >= (o.wallet_id, o.address)
        and (t.wallet_id, t.address, b.asset_id) > (o.wallet_id, o.address, o.asset_id)`
    : sql``
  // Along the addresses of the wallets: the key of the balances begins with the address.
  const { rows } = await sql<{ count: number }>`
    with page as materialized (
      select t.wallet_id, t.address, b.asset_id, b.organization_id
      from balance_reopening o join wallet w on w.network_id = o.network_id
      join wallet_address t on t.wallet_id = w.wallet_id
      join balance b on b.address = t.address and b.wallet_id = t.wallet_id
      where o.network_id = ${network_id} ${beyond}
      order by t.wallet_id, t.address, b.asset_id limit ${limit}),
    last as (
      select * from page order by wallet_id desc, address desc, asset_id desc limit 1),
    moved as (
      update balance_reopening o set wallet_id = l.wallet_id, address = l.address,
        asset_id = l.asset_id
      from last l where o.network_id = ${network_id}),
    made as (
      insert into balance_change (wallet_id, address, asset_id, block_number, organization_id,
        network_id, due_block, ahead)
      select wallet_id, address, asset_id, ${reopening.block_number}::int8, organization_id,
        ${network_id}::int2, ${head}::int8, true
      from page
      on conflict (wallet_id, address, asset_id, block_number) do update
        set delta = null, due_block = excluded.due_block, ahead = true)
    select count(*)::int8 as count from page`.execute(trx)
  const count = rows[0]!.count
  if (count === limit) return count
  // Readings that wait for confirmation come last: pages of stored balances were full until here.
  const kept = await reopenPending(trx, { network_id, head, limit, ...reopening })
  if (kept < limit)
    await sql`delete from balance_reopening where network_id = ${network_id}`.execute(trx)
  return count + kept
}

/** What was read before the block and waits for its confirmation lacks the same changes. */
const reopenPending = async (
  trx: Db,
  reopening: { network_id: number; head: number; limit: number; block_number: number },
): Promise<number> => {
  const { network_id, head, limit, block_number } = reopening
  const { rows } = await sql<{ count: number }>`
    with early as materialized (
      select address, wallet_id, asset_id, block_number from balance_pending
      where network_id = ${network_id} and block_number < ${block_number}
      order by block_number limit ${limit} for update),
    gone as (
      delete from balance_pending p using early s
      where p.address = s.address and p.wallet_id = s.wallet_id and p.asset_id = s.asset_id
        and p.block_number = s.block_number
      returning p.*),
    made as (
      insert into balance_change (wallet_id, address, asset_id, block_number, organization_id,
        network_id, due_block, ahead)
      select distinct wallet_id, address, asset_id, ${block_number}::int8, organization_id,
        ${network_id}::int2, ${head}::int8, true
      from gone
      on conflict (wallet_id, address, asset_id, block_number) do nothing)
    select count(*)::int8 as count from early`.execute(trx)
  return rows[0]!.count
}
