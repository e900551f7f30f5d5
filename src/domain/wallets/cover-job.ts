// Tokens that are imported for all addresses, where tokens have accounts of their own (T). The accounts are asked of nodes,
// about one call per page of `pairsPerPage`, so it is a job with pages that survives its process.

import type { BalanceQuery, Chain } from '../../chains/chain.ts'
import type { AssetKey } from '../../contract/records/assets.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Db } from '../../storage/pg/database.ts'
import { awaitCursor } from '../../storage/tracking/blocks.ts'
import { finishJob, type JobRow, keepJob } from '../../storage/tracking/jobs.ts'
import { addReread } from '../../storage/tracking/rereads.ts'
import {
  holdAddresses,
  type OwnedAddress,
  pageOwnedAddresses,
} from '../../storage/wallets/addresses.ts'
import {
  assetIdOf,
  findAssets,
  findOwnAccounts,
  insertTokenImports,
} from '../../storage/wallets/assets.ts'
import type { WalletScope } from '../../storage/wallets/tables.ts'
import {
  findTokenRules,
  holdTokenRules,
  listRuleAssets,
} from '../../storage/wallets/token-rules.ts'
import { whileHeld } from './held-job.ts'
import { readAndStore } from './read-balances.ts'

/** The kind of the jobs that track tokens of whole wallets and organizations at their addresses. */
export const coverJobKind = 'cover_tokens'

/**
 * What such a job does: one token at all addresses of a wallet or of the organization, or all tokens
 * of rules at some addresses that were registered. Addresses in hex, as all bytes in JSON.
 */
export type CoverTarget = TargetOf & {
  /** The last block that was stored when it was asked for. Tokens that moved since are listed. */
  since_block?: number
}

type TargetOf =
  | { asset_id: string; wallet_id?: string }
  | { wallet_id: string; addresses: string[] }

/** How far it is, how often it failed since the last page, and how often of that for want of accounts. */
type Progress = {
  wallet_id?: string
  address?: string
  done?: number
  failed?: number
  unnamed?: number
}

type Tools = { db: Db; clock: Clock; chain: Chain; signal: AbortSignal }

type Page = { assets: AssetKey[]; owned: OwnedAddress[]; next: Progress | undefined }

// About one call of a node per page: a pair is one address and one token.
const pairsPerPage = 100
const lastPauseSeconds = 300
// A node that is behind may not know a token yet. About a minute later what names no account has none.
const mostUnnamed = 5

// A transfer that is refused comes back within a few blocks. Its return is found only after its record.
const returnBlocks = 8

type CoverScope = WalletScope & { since_block: number | undefined }

/** A token named no account for some addresses. */
class UnnamedAccountError extends Error {
  override name = 'UnnamedAccountError'
}

/**
 * Does one page of a job: finds the token accounts where the chain has them, tracks them and reads the
 * balances. Then the job waits for its turn again. Says whether all is done.
 */
export async function runCover(tools: Tools, job: JobRow): Promise<boolean> {
  const { db } = tools
  const scope = { organization_id: job.organization_id!, network_id: job.network_id! }
  const { assets, owned, next } = await nextPage(db, scope, job)
  const { unnamed = 0 } = (job.progress ?? {}) as Progress
  const { since_block } = job.payload as CoverTarget
  const act = async (signal: AbortSignal): Promise<void> => {
    let count = 0
    // One token after the other. Their pages share the addresses, so that a failure repeats
    // little.
    for (const asset of assets)
      count += await coverAsset({ ...tools, signal }, { ...scope, since_block }, asset, owned)
    // Thrown after the others were stored, so that only what is missing is asked for again.
    if (count > 0 && unnamed < mostUnnamed)
      throw new UnnamedAccountError(`tokens name no account for ${count} addresses`)
  }
  if (owned.length > 0 && !(await whileHeld(tools, job, act))) return false
  if (!next) return await finishJob(db, job)
  await keepJob(db, job, { progress: next, keepMs: 0 })
  return false
}

/** Lets a job that failed be repeated, later each time. */
export async function postponeCover(
  { db }: Pick<Tools, 'db'>,
  job: JobRow,
  error: unknown,
): Promise<void> {
  const progress = (job.progress ?? {}) as Progress
  const failed = (progress.failed ?? 0) + 1
  const isUnnamed = error instanceof UnnamedAccountError
  // Bounded before the power, which would be infinite after some thousand failures.
  const seconds = Math.min(2 ** Math.min(failed, 20), lastPauseSeconds)
  await keepJob(db, job, {
    progress: { ...progress, failed, unnamed: (progress.unnamed ?? 0) + (isUnnamed ? 1 : 0) },
    keepMs: seconds * 1_000,
    last_error: error instanceof Error ? error.message : String(error),
  })
}

async function nextPage(db: Db, scope: WalletScope, job: JobRow): Promise<Page> {
  const target = job.payload as CoverTarget
  const { wallet_id, address, done = 0 } = (job.progress ?? {}) as Progress
  if ('addresses' in target) {
    const assets = await listRuleAssets(db, scope, target.wallet_id)
    // With many rules fewer addresses, so that a page stays one page of pairs.
    const count = Math.max(1, Math.floor(pairsPerPage / Math.max(1, assets.length)))
    const end = done + count
    const some = target.addresses.slice(done, end).map((one) => Buffer.from(one, 'hex'))
    const owned = (await holdAddresses(db, scope, some)).filter(
      (one) => one.wallet_id === target.wallet_id,
    )
    const isLast = assets.length === 0 || end >= target.addresses.length
    return { assets, owned, next: isLast ? undefined : { done: end } }
  }
  const assets = await findAssets(db, [target.asset_id])
  const owned = await pageOwnedAddresses(db, scope, {
    wallet_id: target.wallet_id,
    after:
      wallet_id === undefined ? undefined : { wallet_id, address: Buffer.from(address!, 'hex') },
    limit: pairsPerPage,
  })
  const last = owned.length === pairsPerPage ? owned.at(-1) : undefined
  const next = last && { wallet_id: last.wallet_id, address: last.address.toString('hex') }
  return { assets, owned, next }
}

/** Tracks one token at some addresses and reads their balances. Says for how many it names no account. */
async function coverAsset(
  tools: Tools,
  { since_block, ...scope }: CoverScope,
  asset: AssetKey,
  owned: readonly OwnedAddress[],
): Promise<number> {
  const accounts = await accountsOf(tools, { ...scope, since_block }, asset, owned)
  for (const [wallet_id, some] of Map.groupBy(owned, (one) => one.wallet_id)) {
    const queries = some.flatMap(({ address }): BalanceQuery[] => {
      if (!accounts) return [{ address, asset }]
      const token_account_address = accounts.get(address.toString('hex'))
      return token_account_address ? [{ address, asset, token_account_address }] : []
    })
    // All addresses of a wallet have its confirmation.
    const { confirmation } = some[0]!
    if (queries.length > 0)
      await readAndStore(tools, { ...scope, wallet_id, confirmation, queries })
  }
  return accounts ? owned.length - accounts.size : 0
}

/** The token accounts of addresses, which are tracked from now on; undefined where the chain has none. */
async function accountsOf(
  { db, clock, chain, signal }: Tools,
  { since_block, ...scope }: CoverScope,
  asset: AssetKey,
  owned: readonly OwnedAddress[],
): Promise<Map<string, Buffer> | undefined> {
  const find = chain.tokens?.findAccounts
  if (!find || asset.contract_address.length === 0) return undefined
  const asset_id = assetIdOf(scope.network_id, asset)
  const addresses = owned.map(({ address }) => address)
  // Accounts that an earlier attempt found are not asked for again.
  const known = await findOwnAccounts(db, scope, { asset_id, addresses })
  const accounts = new Map(known.map((one) => [one.address.toString('hex'), one.account]))
  const missing = addresses.filter((address) => !accounts.has(address.toString('hex')))
  if (missing.length === 0) return accounts
  const found = await find(asset, missing, signal)
  for (const [at, account] of found.entries())
    if (account) accounts.set(missing[at]!.toString('hex'), account)
  const now = new Date(clock.now())
  await db.transaction().execute(async (trx) => {
    // Blocks after this one are matched with the accounts.
    const head = (await awaitCursor(trx, scope.network_id))?.block_number
    // What was removed meanwhile must not be tracked: nothing would take the import away again.
    await holdTokenRules(trx, scope.organization_id)
    const rules = await findTokenRules(trx, scope.network_id, {
      ...{ asset_ids: [asset_id], organization_ids: [scope.organization_id] },
    })
    const held = await holdAddresses(trx, scope, missing)
    const imports = held.flatMap(({ wallet_id, address }) => {
      const token_account_address = accounts.get(address.toString('hex'))
      const isRuled = rules.some((rule) => !rule.wallet_id || rule.wallet_id === wallet_id)
      if (!token_account_address || !isRuled) return []
      const token_address = asset.contract_address
      return [
        {
          ...{ ...scope, wallet_id, address, asset_id, token_address, token_account_address },
          since_block: since_block ?? head ?? 0,
        },
      ]
    })
    const count = await insertTokenImports(trx, imports, now)
    if (count === 0 || since_block === undefined || head === undefined || head <= since_block)
      return
    const range = { from: since_block + 1, to: head + returnBlocks }
    await addReread(trx, { network_id: scope.network_id, ...range, now })
  })
  return accounts
}
