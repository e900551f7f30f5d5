// The transfers of notifications. A transaction may have any number of them, so every statement bounds what it reads or counts.

import { type RawBuilder, sql } from 'kysely'
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

const shortText = (name: 'token_uri' | 'token_data', isBeyond: RawBuilder<unknown>) => {
  const column = sql.ref(`a.${name}`)
  return sql`
    case when octet_length(${column}) <= ${longestTokenText} and not ${isBeyond} then ${column} end
      as ${sql.ref(name)},
    octet_length(${column}) > case when ${isBeyond} then 0 else ${longestTokenText} end
      as ${sql.ref(`${name}_omitted`)}`
}

// Known without reading the texts. A text that is not read counts nothing.
const textBytes = sql.join(
  (['token_uri', 'token_data'] as const).map((name) => {
    const length = sql`octet_length(${sql.ref(`a.${name}`)})`
    return sql`case when ${length} <= ${longestTokenText} then ${length} else 0 end`
  }),
  sql` + `,
)

/** The bytes of the texts of the rows before one of `page t`, among all rows or those of a part. */
const bytesBefore = (part = sql``) => sql`coalesce(sum(${textBytes}) over (
  ${part} order by t.block_number, t.ordinal, t.side rows between unbounded preceding and 1 preceding), 0)`

const described = (isBeyond: RawBuilder<unknown>) => sql`
  select t.*, a.asset_type, a.contract_address, a.token_id, a.name, a.symbol, a.decimals,
    ${shortText('token_uri', isBeyond)}, ${shortText('token_data', isBeyond)}, ${isBeyond} as is_beyond,
    w.confirmation, w.confirmed_block
  from page t join asset a on a.asset_id = t.asset_id join wallet w on w.wallet_id = t.wallet_id
  order by t.block_number, t.ordinal, t.side`

/** How many transfers are read at most, and how many bytes of descriptions. */
type TransferBounds = { rows: number; bytes: number }

/**
 * The transfers of notifications, in the order of the chain, so many at most. Where `is_beyond` is true, the descriptions are left
 * out, because those before have more bytes than the bound.
 */
export const listNotifiedTransfers = async (
  trx: Db,
  network_id: number,
  waiting: readonly NotifiedTransaction[],
  { rows: limit, bytes }: TransferBounds,
): Promise<ListedTransfer[]> => {
  const { rows } = await sql<ListedTransfer>`
    with page as materialized (
      select t.* from transfer t where ${inTransactions(network_id, waiting)}
      order by t.block_number, t.ordinal, t.side limit ${limit})
    ${described(sql`(${bytesBefore()} > ${bytes}::int8)`)}`.execute(trx)
  return rows
}

const inTransactions = (network_id: number, waiting: readonly NotifiedTransaction[]) => {
  const hashes = distinctBytes(waiting.map(({ transaction_hash }) => transaction_hash))
  const numbers = [...new Set(waiting.map(({ transfer_block }) => transfer_block))]
  const organizations = [...new Set(waiting.map(({ organization_id }) => organization_id))]
  // Block numbers narrow the partitions and the index; the hashes alone would search all months.
  return sql`
    t.network_id = ${network_id} and t.block_number = any(${numbers}::int8[])
    and t.transaction_hash = any(${hashes}::bytea[])
    and t.organization_id = any(${organizations}::uuid[])`
}

const inTransaction = (
  network_id: number,
  { organization_id, transaction_hash, transfer_block }: NotifiedTransaction,
) => sql`
  t.network_id = ${network_id} and t.block_number = ${transfer_block}
  and t.transaction_hash = ${transaction_hash} and t.organization_id = ${organization_id}`

/** Which shares of a transaction are wanted: the whole of it, and those of wallets; of some places in the block, or of all. */
export type TransactionShares = {
  isWhole: boolean
  wallet_ids: readonly string[]
  ordinals: readonly number[] | null
}

const ofWallets = ({ wallet_ids }: TransactionShares, limit: number) =>
  sql`(t.wallet_id = any(${wallet_ids as string[]}::uuid[]) and t.wallet_place <= ${limit})`

const ofWhole = ({ isWhole }: TransactionShares, limit: number) =>
  sql`(${isWhole} and t.place <= ${limit})`

/** The first transfers of each share, as `page`. */
const sharesOf = (
  network_id: number,
  transaction: NotifiedTransaction,
  shares: TransactionShares,
  limit: number,
) => {
  const { ordinals } = shares
  return sql`
    placed as (
      select t.*, row_number() over (partition by t.organization_id order by t.ordinal, t.side) as place,
        row_number() over (partition by t.organization_id, t.wallet_id order by t.ordinal, t.side)
          as wallet_place
      from transfer t where ${inTransaction(network_id, transaction)}
        and (${ordinals as number[] | null}::int8[] is null
          or t.ordinal = any(${ordinals as number[] | null}::int8[]))),
    page as materialized (
      select * from placed t where ${ofWhole(shares, limit)} or ${ofWallets(shares, limit)})`
}

/**
 * The first transfers of a transaction: so many of the whole of it, if that is wanted, and as many of each of some
 * wallets. Each of these has its own bound of bytes; behind it the descriptions are left out, and marked as omitted.
 */
export const listTransactionShares = async (
  trx: Db,
  network_id: number,
  transaction: NotifiedTransaction,
  shares: TransactionShares,
  { rows: limit, bytes }: TransferBounds,
): Promise<ListedTransfer[]> => {
  const isWithin = sql`(
    (${ofWhole(shares, limit)} and ${bytesBefore()} <= ${bytes}::int8)
    or (${ofWallets(shares, limit)}
      and ${bytesBefore(sql`partition by t.wallet_id`)} <= ${bytes}::int8))`
  const { rows } = await sql<ListedTransfer>`
    with ${sharesOf(network_id, transaction, shares, limit)}
    ${described(sql`(not ${isWithin})`)}`.execute(trx)
  return rows
}

/** How many rows and bytes of descriptions `listTransactionShares` reads of each wallet. */
export const measureTransactionShares = async (
  trx: Db,
  network_id: number,
  transaction: NotifiedTransaction,
  shares: TransactionShares,
  { rows: limit, bytes }: TransferBounds,
): Promise<Map<string, TransferBounds>> => {
  const { rows } = await sql<{ wallet_id: string } & TransferBounds>`
    with ${sharesOf(network_id, transaction, { ...shares, isWhole: false }, limit)}
    select t.wallet_id, count(*)::int4 as rows, least(sum(${textBytes}), ${bytes + 2 * longestTokenText}::int8)::int8 as bytes
    from page t join asset a on a.asset_id = t.asset_id
    group by t.wallet_id`.execute(trx)
  return new Map(rows.map(({ wallet_id, ...read }) => [wallet_id, read]))
}

/** The first place in the block of each of some transactions, so far as they have transfers. */
export const listTransactionPlaces = async (
  trx: Db,
  network_id: number,
  waiting: readonly NotifiedTransaction[],
): Promise<(NotifiedTransaction & { ordinal: number })[]> => {
  const { rows } = await sql<NotifiedTransaction & { ordinal: number }>`
    select t.organization_id, t.transaction_hash, t.block_number as transfer_block,
      min(t.ordinal)::int8 as ordinal
    from transfer t where ${inTransactions(network_id, waiting)}
    group by t.organization_id, t.transaction_hash, t.block_number`.execute(trx)
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
