// Statements on managed and pending transactions. They use `pg`. At most one open transaction holds a nonce of
// an address within an organization.

import { type RawBuilder, sql, type Updateable } from 'kysely'
import type { TransactionState } from '../../contract/records/states.ts'
import type { RowOf } from '../pg/columns.ts'
import type { Db } from '../pg/database.ts'
import type { Tables } from '../pg/tables.ts'
import type { WalletScope } from '../wallets/tables.ts'
import type { transactionTables } from './tables.ts'

/** A managed transaction. */
export type TransactionRow = RowOf<typeof transactionTables.managed_transaction>

/** What may change of a managed transaction. */
export type TransactionChange = Omit<Updateable<Tables['managed_transaction']>, 'due_block'> & {
  due_block?: RawBuilder<number> | null
}

/** Blocks after its own that a transaction waits for. 0 and 1 both mean at inclusion (docs/decisions/transactions.md). */
export const depthOf = (wallet_id: RawBuilder<unknown>): RawBuilder<number> =>
  sql`greatest((select confirmation from wallet w where w.wallet_id = ${wallet_id}), 1) - 1`

/** The block that confirms what a block has decided. The cursor must be locked, or shared, for the confirmation to stay. */
export const dueBlockOf = (block_number: number): RawBuilder<number> =>
  sql`${block_number}::int8 + ${depthOf(sql`managed_transaction.wallet_id`)}`

/** What a new managed transaction is made of. */
export type NewTransaction = Pick<
  TransactionRow,
  | 'organization_id'
  | 'transaction_id'
  | 'network_id'
  | 'wallet_id'
  | 'transaction_state'
  | 'from'
  | 'to'
  | 'value'
  | 'gas'
  | 'gas_price'
  | 'data'
  | 'nonce'
  | 'eip155_chain_id'
  | 'request_hash'
  | 'create_time'
> & { warnings: readonly string[] }

/** A place in a list of transactions, newest first. */
export type TransactionPosition = { create_time: Date; transaction_id: string }

/**
 * Stores a transaction; undefined when its id is taken. Carries on what is known of the address (./sender-nonces.ts):
 * `isLowest` says that the nonce was the lowest free one.
 */
export const insertTransaction = async (
  trx: Db,
  row: NewTransaction,
  { isLowest }: { isLowest: boolean },
): Promise<TransactionRow | undefined> => {
  const insert = trx
    .insertInto('managed_transaction')
    .values({
      ...row,
      warnings: row.warnings.length > 0 ? JSON.stringify(row.warnings) : null,
      update_time: row.create_time,
      broadcast_count: 0,
      is_unsure: false,
    })
    .onConflict((conflict) => conflict.doNothing())
    .returningAll()
  // In one statement, so that a transaction that was not stored leaves no trace. After a gap, such as nonces that were used
  // outside of the service, the known ones begin anew.
  const { rows } = await sql<TransactionRow>`
    with created as (${insert}), noted as (
      update sender_nonce s set
        base_nonce = case when ${isLowest} and c.nonce > next_nonce then c.nonce else base_nonce end,
        next_nonce = case when ${isLowest} then c.nonce + 1 else next_nonce end,
        open_count = open_count + 1, open_cost = open_cost + c.value + c.gas * c.gas_price
      from created c
      where s.organization_id = ${row.organization_id} and s.network_id = ${row.network_id}
        and s."from" = ${row.from})
    select * from created`.execute(trx)
  return rows[0]
}

const ofScope = (db: Db, { organization_id, network_id }: WalletScope) =>
  db
    .selectFrom('managed_transaction')
    .selectAll()
    .where('organization_id', '=', organization_id)
    .where('network_id', '=', network_id)

/** A transaction of an organization. */
export const findTransaction = async (
  db: Db,
  scope: WalletScope,
  transaction_id: string,
): Promise<TransactionRow | undefined> =>
  (await ofScope(db, scope).where('transaction_id', '=', transaction_id).executeTakeFirst()) as
    | TransactionRow
    | undefined

/** The transaction of an organization that has an id, on whichever network. */
export const findTransactionById = async (
  db: Db,
  organization_id: string,
  transaction_id: string,
): Promise<TransactionRow | undefined> =>
  await db
    .selectFrom('managed_transaction')
    .selectAll()
    .where('organization_id', '=', organization_id)
    .where('transaction_id', '=', transaction_id)
    .executeTakeFirst()

/** The newest transaction of an organization with a hash. */
export const findTransactionByHash = async (
  db: Db,
  scope: WalletScope,
  transaction_hash: Buffer,
): Promise<TransactionRow | undefined> =>
  await ofScope(db, scope)
    .where('transaction_hash', '=', transaction_hash)
    .orderBy('create_time', 'desc')
    .executeTakeFirst()

/** A transaction, locked until the caller's ends. */
export const lockTransaction = async (
  trx: Db,
  scope: WalletScope,
  transaction_id: string,
): Promise<TransactionRow | undefined> =>
  await ofScope(trx, scope)
    .where('transaction_id', '=', transaction_id)
    .forUpdate()
    .executeTakeFirst()

/** Changes a transaction that the caller has locked. */
export const updateTransaction = async (
  trx: Db,
  { organization_id, transaction_id }: Pick<TransactionRow, 'organization_id' | 'transaction_id'>,
  change: TransactionChange,
): Promise<TransactionRow> =>
  await trx
    .updateTable('managed_transaction')
    .set(change)
    .where('organization_id', '=', organization_id)
    .where('transaction_id', '=', transaction_id)
    .returningAll()
    .executeTakeFirstOrThrow()

/** The same change of transactions that the caller has locked, in one statement. */
export const updateTransactions = async (
  trx: Db,
  rows: readonly Pick<TransactionRow, 'organization_id' | 'transaction_id'>[],
  change: TransactionChange,
): Promise<TransactionRow[]> => {
  if (rows.length === 0) return []
  const organization_ids = rows.map(({ organization_id }) => organization_id)
  const transaction_ids = rows.map(({ transaction_id }) => transaction_id)
  return await trx
    .updateTable('managed_transaction')
    .set(change)
    .where(
      sql<boolean>`(organization_id, transaction_id) in (
        select * from unnest(${organization_ids}::uuid[], ${transaction_ids}::text[]))`,
    )
    .returningAll()
    .execute()
}

/** How many bytes the data of the transactions on a page has before the last one of them. */
const maxDataBytes = 1_048_576

/** Where `is_beyond` is true, the data of those before it fills the page. */
export type ListedTransaction = TransactionRow & { is_beyond: boolean }

/**
 * One page of transactions, newest first, without those behind the first one that is beyond it: a hundred with data of 500 KB would
 * be one answer of 100 MB.
 */
export const listTransactions = async (
  db: Db,
  scope: WalletScope,
  filter: {
    wallet_id?: string | undefined
    from?: Buffer | undefined
    transaction_state?: TransactionState | undefined
  },
  { after, limit }: { after?: TransactionPosition | undefined; limit: number },
): Promise<ListedTransaction[]> => {
  let page = ofScope(db, scope)
    .orderBy('create_time', 'desc')
    .orderBy('transaction_id', 'desc')
    .limit(limit)
  if (filter.wallet_id !== undefined) page = page.where('wallet_id', '=', filter.wallet_id)
  if (filter.from) page = page.where('from', '=', filter.from)
  if (filter.transaction_state)
    page = page.where('transaction_state', '=', filter.transaction_state)
  if (after)
    page = page.where(
      // A row comparison, which enters the index of the list order.
      sql<boolean>`(create_time, transaction_id) < (${after.create_time}, ${after.transaction_id})`,
    )
  // The lengths are known without reading the data.
  const until = (places: number) =>
    sql`coalesce(sum(octet_length(data)) over (order by create_time desc, transaction_id desc
      rows between unbounded preceding and ${sql.lit(places)} preceding), 0) > ${maxDataBytes}::int8`
  const { rows } = await sql<ListedTransaction>`
    select * from (
      select t.*, ${until(1)} as is_beyond, ${until(2)} as is_left_out from ${page.as('t')}) t
    where not is_left_out order by create_time desc, transaction_id desc`.execute(db)
  return rows
}
