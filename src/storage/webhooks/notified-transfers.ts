// The transfers of notifications. A transaction may have any number of them, so every statement bounds what it reads or counts.

import { sql } from 'kysely'
import { distinctBytes } from '../../lib/bytes.ts'
import type { Db } from '../pg/database.ts'
import type { ListedTransfer } from '../transfers/transfers.ts'

/** One transaction of a block, as an organization sees it. */
type NotifiedTransaction = {
  organization_id: string
  transaction_hash: Buffer
  transfer_block: number
}

// Any sender can send an item whose description is as long as `token_data` may be. A body is stored for each
// webhook and sent at every attempt: ListTransfers has the whole text.
const longestTokenText = 4_096

const shortText = (name: 'token_uri' | 'token_data') => {
  const column = sql.ref(`a.${name}`)
  return sql`
    case when octet_length(${column}) <= ${longestTokenText} then ${column} end as ${sql.ref(name)},
    octet_length(${column}) > ${longestTokenText} as ${sql.ref(`${name}_omitted`)}`
}

const described = sql`
  select t.*, a.asset_type, a.contract_address, a.token_id, a.name, a.symbol, a.decimals,
    ${shortText('token_uri')}, ${shortText('token_data')}, w.confirmation, w.confirmed_block
  from page t join asset a on a.asset_id = t.asset_id join wallet w on w.wallet_id = t.wallet_id
  order by t.block_number, t.ordinal, t.side`

/** The transfers of notifications, in the order of the chain, so many at most. */
export const listNotifiedTransfers = async (
  trx: Db,
  network_id: number,
  waiting: readonly NotifiedTransaction[],
  limit: number,
): Promise<ListedTransfer[]> => {
  const hashes = distinctBytes(waiting.map(({ transaction_hash }) => transaction_hash))
  const numbers = [...new Set(waiting.map(({ transfer_block }) => transfer_block))]
  const organizations = [...new Set(waiting.map(({ organization_id }) => organization_id))]
  // Block numbers narrow the partitions and the index; the hashes alone would search all months.
  const { rows } = await sql<ListedTransfer>`
    with page as materialized (
      select t.* from transfer t
      where t.network_id = ${network_id} and t.block_number = any(${numbers}::int8[])
        and t.transaction_hash = any(${hashes}::bytea[])
        and t.organization_id = any(${organizations}::uuid[])
      order by t.block_number, t.ordinal, t.side limit ${limit})
    ${described}`.execute(trx)
  return rows
}

const inTransaction = (
  network_id: number,
  { organization_id, transaction_hash, transfer_block }: NotifiedTransaction,
) => sql`
  t.network_id = ${network_id} and t.block_number = ${transfer_block}
  and t.transaction_hash = ${transaction_hash} and t.organization_id = ${organization_id}`

/**
 * The first transfers of a transaction: so many of the whole of it, if that is wanted, and as many of each of some
 * wallets. Where places in the block are named, of those only.
 */
export const listTransactionShares = async (
  trx: Db,
  network_id: number,
  transaction: NotifiedTransaction,
  {
    isWhole,
    wallet_ids,
    ordinals,
  }: { isWhole: boolean; wallet_ids: readonly string[]; ordinals: readonly number[] | null },
  limit: number,
): Promise<ListedTransfer[]> => {
  const { rows } = await sql<ListedTransfer>`
    with placed as (
      select t.*, row_number() over (partition by t.organization_id order by t.ordinal, t.side) as place,
        row_number() over (partition by t.organization_id, t.wallet_id order by t.ordinal, t.side)
          as wallet_place
      from transfer t where ${inTransaction(network_id, transaction)}
        and (${ordinals as number[] | null}::int8[] is null
          or t.ordinal = any(${ordinals as number[] | null}::int8[]))),
    page as materialized (
      select * from placed
      where (${isWhole} and place <= ${limit})
        or (wallet_id = any(${wallet_ids as string[]}::uuid[]) and wallet_place <= ${limit}))
    ${described}`.execute(trx)
  return rows
}

/**
 * How many transfers of a transaction wait for the confirmation of their wallet, as `transfer-view.ts` decides it, and the
 * first block that confirms one of them.
 */
export const countPendingTransfers = async (
  trx: Db,
  network_id: number,
  {
    wallet_id,
    backfilled,
    ...transaction
  }: NotifiedTransaction & { wallet_id: string | null; backfilled: number[] | null },
  head: number,
): Promise<{ count: number; due_block: number }> => {
  const { rows } = await sql<{ count: number; due_block: number | null }>`
    with pending as (
      select t.block_number + greatest(w.confirmation, 1) - 1 as due_block
      from transfer t join wallet w on w.wallet_id = t.wallet_id
      where ${inTransaction(network_id, transaction)}
        and (${wallet_id}::uuid is null or t.wallet_id = ${wallet_id}::uuid)
        and (${backfilled}::int8[] is null or t.ordinal = any(${backfilled}::int8[]))
        and t.transfer_state = 'TRANSFER_STATE_SUCCESS'
        and t.block_number > coalesce(w.confirmed_block, -1))
    select count(*)::int4 as count, min(due_block)::int8 as due_block from pending
    where due_block > ${head}`.execute(trx)
  return {
    count: rows[0]!.count,
    due_block: rows[0]!.due_block ?? Number.MAX_SAFE_INTEGER,
  }
}
