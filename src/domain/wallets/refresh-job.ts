// RefreshAssetBalances and the reading after ImportAsset, as a job with pages: a wallet may have any number of addresses, and
// each of them thousands of assets. A page is a bounded number of pairs of both, and the position is stored after each page.

import type { BalanceQuery, Chain } from '../../chains/chain.ts'
import {
  type AssetKey,
  type AssetType,
  type ContractType,
  contractTypes,
} from '../../contract/records/assets.ts'
import type { Clock } from '../../lib/clock.ts'
import { type AfterPair, pageHeldAssets } from '../../storage/balances/held.ts'
import type { Db } from '../../storage/pg/database.ts'
import { finishJob, type JobRow, keepJob } from '../../storage/tracking/jobs.ts'
import { pageAddresses } from '../../storage/wallets/addresses.ts'
import {
  assetIdOf,
  findAssets,
  findOwnAccounts,
  pageTokenImports,
} from '../../storage/wallets/assets.ts'
import { pageContracts } from '../../storage/wallets/contracts.ts'
import type { WalletScope } from '../../storage/wallets/tables.ts'
import { listRuleAssets } from '../../storage/wallets/token-rules.ts'
import { findWallet } from '../../storage/wallets/wallets.ts'
import { keepMs, whileHeld } from './held-job.ts'
import { readAndStore } from './read-balances.ts'

/** The kind of the jobs that read balances. */
export const refreshJobKind = 'refresh_balances'

/** What such a job reads: a wallet or one of its addresses, all assets of a type or one. */
export type RefreshTarget = {
  wallet_id: string
  /** In hex, as all bytes in JSON. */
  address?: string
  asset_type: AssetType
  asset_id?: string
}

/** What the work needs. */
export type RefreshTools = {
  db: Db
  clock: Clock
  chain: Chain
  signal: AbortSignal
  /** How many balances to read now, in how many pages; all of them without it. */
  most?: { balances?: number; pages: number }
}

// One call of a node for the coin of all of them.
const addressesPerPage = 100
// Blocks wait while the balances of a page are stored.
const pairsPerPage = 500
const lastPauseMs = 300_000

/**
 * How far a job is. The version before knows `after` only, the last address of which everything is read, and may continue the job.
 */
type Progress = {
  after?: string
  at?: Position
  /** How often it failed since its last page. */
  failed?: number
}

/** Where a page begins: behind an address, or within the next one behind a key. One part of the work follows the other. */
type Position = { part: number; after?: string; address?: string; key?: string }

/**
 * Reads the balances of a job page by page and notes after each how far it is; ends early at the
 * limits, or when the same job was restarted. Returns whether it is complete.
 */
export async function runRefresh(tools: RefreshTools, job: JobRow): Promise<boolean> {
  const { db, signal, most } = tools
  const mostBalances = most?.balances ?? Number.POSITIVE_INFINITY
  // Where an earlier attempt, or the answer to the caller, has stopped.
  const { after, at: stored } = (job.progress ?? {}) as Progress
  let at: Position = stored ?? { part: 0, ...(after !== undefined && { after }) }
  let read = 0
  for (let pages = 1; ; pages++) {
    signal.throwIfAborted()
    const limit = Math.min(pairsPerPage, mostBalances - read)
    const { next, ...page } = await nextPage(tools, job, at, limit)
    const act = (held: AbortSignal) => readAndStore({ ...tools, signal: held }, page)
    if (page.queries.length > 0 && !(await whileHeld(tools, job, act))) return false
    read += page.queries.length
    if (next === undefined) return await finishJob(db, job)
    at = next.at
    const paused = most !== undefined && (read >= mostBalances || pages >= most.pages)
    const kept = await keepJob(db, job, { progress: next, keepMs: paused ? 0 : keepMs })
    if (!kept || paused) return false
  }
}

/** Lets a job whose first page failed be repeated, later each time. A stop is no failure: the next process takes it at once. */
export async function postponeRefresh(
  { db, signal }: Pick<RefreshTools, 'db' | 'signal'>,
  job: JobRow,
  error: unknown,
): Promise<number> {
  const progress = (job.progress ?? {}) as Progress
  const failed = (progress.failed ?? 0) + (signal.aborted ? 0 : 1)
  const pauseMs = signal.aborted ? 0 : Math.min(1_000 * 2 ** Math.min(failed, 20), lastPauseMs)
  await keepJob(db, job, {
    progress: { ...progress, failed },
    keepMs: pauseMs,
    last_error: error instanceof Error ? error.message : String(error),
  })
  return pauseMs
}

type Page = {
  organization_id: string
  network_id: number
  wallet_id: string
  confirmation: number
  queries: BalanceQuery[]
  /** The progress after this page; undefined on the last one. */
  next: (Progress & { at: Position }) | undefined
}

async function nextPage(
  { db, chain }: RefreshTools,
  job: JobRow,
  at: Position,
  limit: number,
): Promise<Page> {
  const target = job.payload as RefreshTarget
  const scope = { organization_id: job.organization_id!, network_id: job.network_id! }
  const wallet = await findWallet(db, scope, target.wallet_id)
  const page = { ...scope, wallet_id: target.wallet_id, confirmation: wallet?.confirmation ?? 1 }
  // Erased meanwhile: an empty last page ends the job.
  if (!wallet) return { ...page, queries: [], next: undefined }
  const addresses = target.address
    ? [Buffer.from(target.address, 'hex')]
    : (
        await pageAddresses(db, target.wallet_id, {
          after: at.after === undefined ? undefined : Buffer.from(at.after, 'hex'),
          limit: addressesPerPage,
        })
      ).map(({ address }) => address)
  const parts = partsOf({ db, chain }, scope, target)
  const from =
    at.address === undefined ? undefined : { address: Buffer.from(at.address, 'hex'), key: at.key! }
  const { queries, last } = (await parts[at.part]?.(addresses, from, limit)) ?? { queries: [] }
  const isLastPart = at.part + 1 >= parts.length
  const follow = (position: Position): Page['next'] =>
    isLastPart && position.after !== undefined
      ? { after: position.after, at: position }
      : { at: position }
  if (last) {
    const before = addresses[addresses.findIndex((one) => one.equals(last.address)) - 1]
    const after = before?.toString('hex') ?? at.after
    const within = { address: last.address.toString('hex'), key: last.key }
    const next = { part: at.part, ...(after !== undefined && { after }), ...within }
    return { ...page, queries, next: follow(next) }
  }
  if (!target.address && addresses.length === addressesPerPage)
    return {
      ...page,
      queries,
      next: follow({ part: at.part, after: addresses.at(-1)!.toString('hex') }),
    }
  return { ...page, queries, next: isLastPart ? undefined : { at: { part: at.part + 1 } } }
}

/** Pairs of some addresses behind one of them, with the last one where the limit ends the page. */
type Part = (
  addresses: Buffer[],
  from: AfterPair | undefined,
  limit: number,
) => Promise<{ queries: BalanceQuery[]; last?: AfterPair | undefined }>

/** What a target asks for: the assets that all addresses share, then those that each has for itself. */
function partsOf(
  tools: Pick<RefreshTools, 'db' | 'chain'>,
  scope: WalletScope,
  target: RefreshTarget,
): Part[] {
  const { asset_id, asset_type } = target
  if (asset_id !== undefined) return [oneAsset(tools, scope, asset_id)]
  if (asset_type === tools.chain.native.asset_type) {
    const shared = coinAndRules(tools, scope, target)
    return tools.chain.parseToken ? [shared, imports(tools, scope, target)] : [shared]
  }
  const fungible = contractTypes.find((type) => {
    const standard = tools.chain.standards?.[type]
    return standard?.asset_type === asset_type && !standard.isCollection
  })
  const held = heldAssets(tools, scope, target, fungible)
  return fungible ? [contracts(tools, scope, { asset_type, fungible }), held] : [held]
}

type Keyed = { key: string; asset: AssetKey }

/** All pairs of addresses and assets that they share. The assets come in the order of their keys. */
const pairsWith =
  (list: (after: string | undefined, limit: number) => Promise<Keyed[]>): Part =>
  async (addresses, from, limit) => {
    const all = await list(undefined, limit)
    const rest = from ? await list(from.key, limit) : []
    const queries: BalanceQuery[] = []
    for (const address of addresses)
      for (const { key, asset } of from?.address.equals(address) ? rest : all) {
        queries.push({ address, asset })
        if (queries.length === limit) return { queries, last: { address, key } }
      }
    return { queries }
  }

/** One asset, at a token account where one is imported (T). */
const oneAsset =
  ({ db, chain }: Pick<RefreshTools, 'db' | 'chain'>, scope: WalletScope, asset_id: string): Part =>
  async (addresses) => {
    const { native } = chain
    if (assetIdOf(scope.network_id, native) === asset_id)
      return { queries: addresses.map((address) => ({ address, asset: native })) }
    const [asset] = await findAssets(db, [asset_id])
    if (!asset) return { queries: [] }
    const accounts = await findOwnAccounts(db, scope, { asset_id, addresses })
    const queries = addresses.map((address) => {
      const token_account_address = accounts.find((one) => one.address.equals(address))?.account
      return { address, asset, ...(token_account_address && { token_account_address }) }
    })
    return { queries }
  }

/** The assets that rules track. Where tokens have accounts of their own (T), those are imported for each address. */
const rulesOf = async (
  { db, chain }: Pick<RefreshTools, 'db' | 'chain'>,
  scope: WalletScope,
  wallet_id: string,
) => (chain.parseToken && !chain.tokenAccounts ? await listRuleAssets(db, scope, wallet_id) : [])

const coinAndRules = (
  tools: Pick<RefreshTools, 'db' | 'chain'>,
  scope: WalletScope,
  { wallet_id }: RefreshTarget,
): Part =>
  pairsWith(async (after, limit) => {
    const rules = await rulesOf(tools, scope, wallet_id)
    const tokens = rules.map(({ asset_id: key, ...asset }) => ({ key, asset }))
    return [{ key: '', asset: tools.chain.native }, ...tokens]
      .filter(({ key }) => after === undefined || key > after)
      .slice(0, limit)
  })

/** Tokens that are imported at each address, with their accounts (T). */
const imports =
  (
    tools: Pick<RefreshTools, 'db' | 'chain'>,
    scope: WalletScope,
    { wallet_id }: RefreshTarget,
  ): Part =>
  async (addresses, from, limit) => {
    const rows = await pageTokenImports(tools.db, scope, { wallet_id, addresses, from, limit })
    const ruled = new Set((await rulesOf(tools, scope, wallet_id)).map(({ asset_id }) => asset_id))
    const queries = rows.flatMap(({ asset_id, address, token_account_address, ...asset }) =>
      ruled.has(asset_id) ? [] : [{ address, asset, token_account_address }],
    )
    return { queries, last: lastOf(rows, limit) }
  }

/** In the order of the contracts: the hash of each is made only where it is read. */
const contracts = (
  { db }: Pick<RefreshTools, 'db'>,
  scope: WalletScope,
  { asset_type, fungible }: { asset_type: AssetType; fungible: ContractType },
): Part =>
  pairsWith(async (after, limit) => {
    const behind = after === undefined ? undefined : Buffer.from(after, 'hex')
    const rows = await pageContracts(db, scope, fungible, { after: behind, limit })
    return rows.map((contract_address) => ({
      key: contract_address.toString('hex'),
      asset: { asset_type, contract_address, token_id: 0n },
    }))
  })

/** Nodes cannot list the items that an address holds: items seen before are read again. */
const heldAssets =
  (
    { db }: Pick<RefreshTools, 'db'>,
    scope: WalletScope,
    { wallet_id, asset_type }: RefreshTarget,
    fungible: ContractType | undefined,
  ): Part =>
  async (addresses, from, limit) => {
    const page = { wallet_id, addresses, from, limit, fungible }
    const rows = await pageHeldAssets(db, scope, page)
    const queries = rows.flatMap(({ address, asset_id: _, is_listed, ...asset }) =>
      // Those of contracts have been read with them.
      asset.asset_type === asset_type && !is_listed ? [{ address, asset }] : [],
    )
    return { queries, last: lastOf(rows, limit) }
  }

const lastOf = (
  rows: readonly { address: Buffer; asset_id: string }[],
  limit: number,
): AfterPair | undefined => {
  const last = rows.length === limit ? rows.at(-1) : undefined
  return last && { address: last.address, key: last.asset_id }
}
