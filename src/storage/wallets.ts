import { sql } from 'kysely'
import type { Db } from './database.ts'
import type { WalletRow } from './wallet-tables.ts'

/** Whose wallets, on which chain. */
export type WalletScope = { organization_id: string; chain_id: number }

/** Stores a wallet. */
export const insertWallet = async (
  db: Db,
  wallet: Omit<WalletRow, 'update_time' | 'address_count'>,
): Promise<void> => {
  await db
    .insertInto('wallet')
    .values({ ...wallet, update_time: wallet.create_time, address_count: 0 })
    .execute()
}

/** A wallet of this organization and chain. */
export const findWallet = async (
  db: Db,
  { organization_id, chain_id }: WalletScope,
  wallet_id: string,
): Promise<WalletRow | undefined> =>
  await db
    .selectFrom('wallet')
    .selectAll()
    .where('wallet_id', '=', wallet_id)
    .where('organization_id', '=', organization_id)
    .where('chain_id', '=', chain_id)
    .executeTakeFirst()

/** One page of wallets in the order of their creation. */
export const listWallets = async (
  db: Db,
  { organization_id, chain_id }: WalletScope,
  { after, limit }: { after?: string | undefined; limit: number },
): Promise<WalletRow[]> => {
  const page = db
    .selectFrom('wallet')
    .selectAll()
    .where('organization_id', '=', organization_id)
    .where('chain_id', '=', chain_id)
    .orderBy('wallet_id')
    .limit(limit)
  return await (after ? page.where('wallet_id', '>', after) : page).execute()
}

/** Notes how many addresses a wallet has gained, or lost where the number is negative. */
export const touchWallet = async (
  trx: Db,
  wallet_id: string,
  { gained, update_time }: { gained: number; update_time: Date },
): Promise<void> => {
  await trx
    .updateTable('wallet')
    .set({ update_time, address_count: sql`address_count + ${gained}` })
    .where('wallet_id', '=', wallet_id)
    .execute()
}

/** Changes the confirmation of a wallet and of the balance work that waits for it. */
export const setConfirmation = async (
  trx: Db,
  scope: WalletScope,
  change: Pick<WalletRow, 'wallet_id' | 'confirmation' | 'update_time'> & { head: number },
): Promise<boolean> => {
  const { wallet_id, confirmation, update_time, head } = change
  const { numUpdatedRows } = await trx
    .updateTable('wallet')
    .set({ confirmation, update_time })
    .where('wallet_id', '=', wallet_id)
    .where('organization_id', '=', scope.organization_id)
    .where('chain_id', '=', scope.chain_id)
    .executeTakeFirst()
  if (numUpdatedRows === 0n) return false
  await sql`
    update balance_change set due_block = block_number + greatest(${confirmation}::int8, 1) - 1
    where wallet_id = ${wallet_id} and due_block > ${head}`.execute(trx)
  return true
}
