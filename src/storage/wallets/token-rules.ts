import { sql } from 'kysely'
import type { AssetKey } from '../../contract/records/assets.ts'
import { hashId } from '../../lib/hash-id.ts'
import { deleteOfWallets } from '../pg/bulk.ts'
import type { Db } from '../pg/database.ts'
import type { WalletScope } from './tables.ts'

/** A token that is tracked for all addresses of a wallet, or without one of the organization. */
export type TokenRule = { wallet_id?: string | undefined; asset_id: string }

// Two-part advisory locks: the class distinguishes what the hash of the organization is locked for.
const lockClass = 5_713_304

/**
 * Keeps new rules of an organization away until the transaction ends. To be called before the rules
 * are listed for new addresses: otherwise a rule and an address that are stored at the same time would
 * not see each other.
 */
export const holdTokenRules = async (trx: Db, organization_id: string): Promise<void> => {
  await sql`select pg_advisory_xact_lock_shared(${sql.lit(lockClass)}, hashtext(${organization_id}))`.execute(
    trx,
  )
}

const lockTokenRules = async (trx: Db, organization_id: string): Promise<void> => {
  await sql`select pg_advisory_xact_lock(${sql.lit(lockClass)}, hashtext(${organization_id}))`.execute(
    trx,
  )
}

const ruleIdOf = (scope: WalletScope, { wallet_id, asset_id }: TokenRule): string =>
  hashId('token_rule', scope.organization_id, scope.network_id, wallet_id ?? '', asset_id)

/** Whether a rule is stored. */
export const hasTokenRule = async (
  db: Db,
  scope: WalletScope,
  rule: TokenRule,
): Promise<boolean> => {
  const row = await db
    .selectFrom('token_rule')
    .select('rule_id')
    .where('rule_id', '=', ruleIdOf(scope, rule))
    .executeTakeFirst()
  return row !== undefined
}

/**
 * Takes a rule away, and the token at the addresses that have it by no other rule and not by name: as many of them as the
 * limit says at a time, and the rule when none is left. Says whether it is gone. The cursor must be locked.
 */
export const deleteTokenRule = async (
  trx: Db,
  scope: WalletScope,
  rule: TokenRule,
  limit: number,
): Promise<boolean> => {
  const { organization_id, network_id } = scope
  const { wallet_id, asset_id } = rule
  const rule_id = ruleIdOf(scope, rule)
  await lockTokenRules(trx, organization_id)
  const one = wallet_id === undefined ? sql`` : sql`and w.wallet_id = ${wallet_id}`
  const wallets = sql`
    select w.wallet_id from wallet w
    where w.organization_id = ${organization_id} and w.network_id = ${network_id} ${one}
      and not exists (
        select 1 from token_rule r
        where r.organization_id = ${organization_id} and r.network_id = ${network_id}
          and r.rule_id <> ${rule_id}
          and r.asset_id = ${asset_id} and (r.wallet_id is null or r.wallet_id = w.wallet_id))`
  const order = sql`b.address`
  const imports = sql`b.asset_id = ${asset_id} and b.since_block is not null`
  const imported = { wallets, condition: imports, order, limit }
  if ((await deleteOfWallets(trx, 'token_import', imported)) === limit) return false
  // An address that has the token by name keeps its balance and work.
  const unnamed = sql`b.asset_id = ${asset_id} and not exists (
    select 1 from token_import i
    where i.network_id = ${network_id} and i.address = b.address and i.asset_id = ${asset_id}
      and i.organization_id = ${organization_id})`
  for (const table of ['balance_change', 'balance_pending'] as const) {
    const worked = { wallets, condition: unnamed, order, limit }
    if ((await deleteOfWallets(trx, table, worked)) === limit) return false
  }
  const balances = {
    ...{ wallets, limit },
    // Follows from the token, and leads to the index.
    condition: sql`b.contract_address = (
      select contract_address from asset where asset_id = ${asset_id}) and ${unnamed}`,
    order: sql`b.contract_address, b.create_time`,
  }
  if ((await deleteOfWallets(trx, 'balance', balances)) === limit) return false
  await trx.deleteFrom('token_rule').where('rule_id', '=', rule_id).execute()
  return true
}

/** Stores a rule once no address is being registered; false when the organization has `most` already. */
export const insertTokenRule = async (
  trx: Db,
  { organization_id, network_id }: WalletScope,
  { wallet_id, asset_id }: TokenRule,
  { most, create_time }: { most: number; create_time: Date },
): Promise<boolean> => {
  await lockTokenRules(trx, organization_id)
  const rule_id = ruleIdOf({ organization_id, network_id }, { wallet_id, asset_id })
  // Counted under the lock, so that two requests cannot pass the bound together.
  const { rows } = await sql<{ count: bigint; is_known: boolean }>`
    select count(*) as count, coalesce(bool_or(rule_id = ${rule_id}), false) as is_known
    from token_rule
    where organization_id = ${organization_id} and network_id = ${network_id}`.execute(trx)
  const { count, is_known } = rows[0]!
  if (is_known) return true
  if (Number(count) >= most) return false
  await trx
    .insertInto('token_rule')
    .values({
      ...{ rule_id, organization_id, network_id, asset_id, create_time },
      wallet_id: wallet_id ?? null,
    })
    .execute()
  return true
}

/** The tokens that rules track for the addresses of a wallet. */
export const listRuleAssets = async (
  db: Db,
  { organization_id, network_id }: WalletScope,
  wallet_id: string,
): Promise<(AssetKey & { asset_id: string })[]> => {
  const { rows } = await sql<AssetKey & { asset_id: string }>`
    select distinct a.asset_id, a.asset_type, a.contract_address, a.token_id
    from token_rule r join asset a on a.asset_id = r.asset_id
    where r.organization_id = ${organization_id} and r.network_id = ${network_id}
      and (r.wallet_id is null or r.wallet_id = ${wallet_id})
    order by a.asset_id`.execute(db)
  return rows
}

/** The rules of some organizations for some tokens: the tracker's look-up. */
export const findTokenRules = async (
  trx: Db,
  network_id: number,
  { asset_ids, organization_ids }: { asset_ids: string[]; organization_ids: string[] },
): Promise<{ organization_id: string; wallet_id: string | null; asset_id: string }[]> =>
  await trx
    .selectFrom('token_rule')
    .select(['organization_id', 'wallet_id', 'asset_id'])
    .where('network_id', '=', network_id)
    .where(sql<boolean>`asset_id = any(${asset_ids}::uuid[])`)
    .where(sql<boolean>`organization_id = any(${organization_ids}::uuid[])`)
    .execute()

/** Takes the rules of a wallet away. */
export const deleteTokenRules = async (
  trx: Db,
  { organization_id, network_id }: WalletScope,
  wallet_id: string,
): Promise<void> => {
  await trx
    .deleteFrom('token_rule')
    .where('organization_id', '=', organization_id)
    .where('network_id', '=', network_id)
    .where('wallet_id', '=', wallet_id)
    .execute()
}
