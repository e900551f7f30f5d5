// Token contracts that an organization watches (C). The rows are per organization although the metadata are the same for
// all: what one tenant registers must not show to another one.

import { sql } from 'kysely'
import type { ContractType } from '../../contract/records/assets.ts'
import { deleteOfWallets } from '../pg/bulk.ts'
import type { Db } from '../pg/database.ts'
import type { ContractRow, WalletScope } from './tables.ts'

/** Registers a contract, or brings what is known of it up to date; says whether it is new. */
export const upsertContract = async (db: Db, contract: ContractRow): Promise<boolean> => {
  const contract_metadata = contract.contract_metadata && JSON.stringify(contract.contract_metadata)
  const row = await db
    .insertInto('contract')
    .values({ ...contract, contract_metadata })
    .onConflict((conflict) =>
      conflict
        .columns(['organization_id', 'network_id', 'contract_address'])
        .doUpdateSet({ contract_type: contract.contract_type, contract_metadata }),
    )
    // A row that was there has been locked by the update.
    .returning(sql<boolean>`xmax = 0`.as('is_new'))
    .executeTakeFirstOrThrow()
  return row.is_new
}

/** The contracts of an organization in the order of their registration. */
export const listContracts = async (
  db: Db,
  { organization_id, network_id }: WalletScope,
): Promise<ContractRow[]> =>
  await db
    .selectFrom('contract')
    .selectAll()
    .where('organization_id', '=', organization_id)
    .where('network_id', '=', network_id)
    // The address decides between contracts that were registered in the same millisecond, so that lists are stable.
    .orderBy('create_time')
    .orderBy('contract_address')
    .execute()

/** Some contracts of a type in the order of their addresses. */
export const pageContracts = async (
  db: Db,
  { organization_id, network_id }: WalletScope,
  contract_type: ContractType,
  { after, limit }: { after: Buffer | undefined; limit: number },
): Promise<Buffer[]> => {
  const page = db
    .selectFrom('contract')
    .select('contract_address')
    .where('organization_id', '=', organization_id)
    .where('network_id', '=', network_id)
    .where('contract_type', '=', contract_type)
    .orderBy('contract_address')
    .limit(limit)
  const rows = await (after ? page.where('contract_address', '>', after) : page).execute()
  return rows.map((row) => row.contract_address)
}

/** Whether a contract is registered. */
export const hasContract = async (
  db: Db,
  { organization_id, network_id }: WalletScope,
  contract_address: Buffer,
): Promise<boolean> => {
  const row = await db
    .selectFrom('contract')
    .select('network_id')
    .where('organization_id', '=', organization_id)
    .where('network_id', '=', network_id)
    .where('contract_address', '=', contract_address)
    .executeTakeFirst()
  return row !== undefined
}

/** Takes a contract out with its balances, which are no longer kept up to date; says whether it was there. */
export const deleteContract = async (
  trx: Db,
  { organization_id, network_id }: WalletScope,
  contract_address: Buffer,
): Promise<boolean> => {
  const { numDeletedRows } = await trx
    .deleteFrom('contract')
    .where('organization_id', '=', organization_id)
    .where('network_id', '=', network_id)
    .where('contract_address', '=', contract_address)
    .executeTakeFirst()
  return numDeletedRows > 0n
}

/** Deletes balances of a contract and work on them, at most so many of each; says whether all are gone. */
export const deleteContractBalances = async (
  trx: Db,
  { organization_id, network_id }: WalletScope,
  contract_address: Buffer,
  limit: number,
): Promise<boolean> => {
  // Along the wallets of the organization: a popular token has balances of many others.
  const wallets = sql`
    select wallet_id from wallet
    where organization_id = ${organization_id} and network_id = ${network_id}`
  const isAsset = sql`b.asset_id in (select asset_id from asset
    where network_id = ${network_id} and contract_address = ${contract_address})`
  const isContract = sql`b.contract_address = ${contract_address}`
  const order = sql`b.address`
  const counts = [
    await deleteOfWallets(trx, 'balance_change', { wallets, condition: isAsset, order, limit }),
    await deleteOfWallets(trx, 'balance_pending', { wallets, condition: isContract, order, limit }),
    await deleteOfWallets(trx, 'balance', {
      ...{ wallets, condition: isContract, limit },
      order: sql`b.contract_address, b.create_time`,
    }),
  ]
  return counts.every((count) => count < limit)
}

/** The watched contracts among those of a block, with their organizations. */
export const findWatched = async (
  trx: Db,
  network_id: number,
  contracts: readonly Buffer[],
): Promise<
  Pick<
    ContractRow,
    'organization_id' | 'contract_address' | 'contract_type' | 'contract_metadata'
  >[]
> => {
  if (contracts.length === 0) return []
  return await trx
    .selectFrom('contract')
    .select(['organization_id', 'contract_address', 'contract_type', 'contract_metadata'])
    .where('network_id', '=', network_id)
    .where(sql<boolean>`contract_address = any(${contracts as Buffer[]}::bytea[])`)
    .execute()
}
