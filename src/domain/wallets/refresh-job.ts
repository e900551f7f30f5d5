// RefreshAssetBalances and the reading after ImportAsset, as a job with pages: a wallet may have any number of addresses,
// and the position is stored after each page.

import type { BalanceQuery, Chain } from '../../chains/chain.ts'
import { type AssetKey, type AssetType, contractTypes } from '../../contract/records/assets.ts'
import type { Clock } from '../../lib/clock.ts'
import { listHeldAssets } from '../../storage/balances/balances.ts'
import type { Db } from '../../storage/pg/database.ts'
import { finishJob, type JobRow, keepJob } from '../../storage/tracking/jobs.ts'
import { pageAddresses } from '../../storage/wallets/addresses.ts'
import { assetIdOf, findAssets, listTokenImports } from '../../storage/wallets/assets.ts'
import { listContracts } from '../../storage/wallets/contracts.ts'
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
  /** About how many balances to read now; all of them without it. */
  limit?: number
}

// One call of a node for the coin of all of them, and as many again for each token.
const addressesPerRead = 100

/**
 * Reads the balances of a job page by page and notes after each how far it is; ends early at the
 * limit, or when the same job was restarted. Returns whether it is complete.
 */
export async function runRefresh(tools: RefreshTools, job: JobRow): Promise<boolean> {
  const { db, signal, limit = Number.POSITIVE_INFINITY } = tools
  const target = job.payload as RefreshTarget
  // Where an earlier attempt, or the answer to the caller, has stopped.
  let after = (job.progress as { after?: string } | null)?.after
  let read = 0
  for (;;) {
    signal.throwIfAborted()
    const page = await nextPage(tools, job, { target, after, room: limit - read })
    const act = (held: AbortSignal) => readAndStore({ ...tools, signal: held }, page)
    if (page.queries.length > 0 && !(await whileHeld(tools, job, act))) return false
    read += page.queries.length
    if (page.last === undefined) return await finishJob(db, job)
    after = page.last
    const paused = read >= limit
    const kept = await keepJob(db, job, { progress: { after }, keepMs: paused ? 0 : keepMs })
    if (!kept || paused) return false
  }
}

type Page = {
  organization_id: string
  network_id: number
  wallet_id: string
  confirmation: number
  queries: BalanceQuery[]
  /** The address after which the next page begins; undefined on the last page. */
  last: string | undefined
}

async function nextPage(
  { db, chain }: RefreshTools,
  job: JobRow,
  at: { target: RefreshTarget; after: string | undefined; room: number },
): Promise<Page> {
  const { target, after, room } = at
  const scope = { organization_id: job.organization_id!, network_id: job.network_id! }
  const wallet = await findWallet(db, scope, target.wallet_id)
  const page = { ...scope, wallet_id: target.wallet_id, confirmation: wallet?.confirmation ?? 1 }
  // Erased meanwhile: an empty last page ends the job.
  if (!wallet) return { ...page, queries: [], last: undefined }
  const addresses = target.address
    ? [Buffer.from(target.address, 'hex')]
    : (
        await pageAddresses(db, target.wallet_id, {
          after: after === undefined ? undefined : Buffer.from(after, 'hex'),
          limit: addressesPerRead,
        })
      ).map(({ address }) => address)
  const found = await queriesOf({ db, chain }, scope, target, addresses)
  // Whole addresses only, because the progress is an address. At least one, or the job would never
  // end.
  let taken = addresses.length
  if (found.length > room) {
    const counts = addresses.map(
      (address) => found.filter((query) => query.address.equals(address)).length,
    )
    let sum = counts[0] ?? 0
    taken = 1
    while (taken < counts.length && sum + counts[taken]! <= room) sum += counts[taken++]!
  }
  const chosen = addresses.slice(0, taken)
  const complete =
    taken === addresses.length && (target.address || addresses.length < addressesPerRead)
  return {
    ...page,
    queries: found.filter(({ address }) => chosen.some((one) => one.equals(address))),
    last: complete ? undefined : chosen.at(-1)?.toString('hex'),
  }
}

/** Which balances a target asks for at some addresses. */
async function queriesOf(
  { db, chain }: Pick<RefreshTools, 'db' | 'chain'>,
  scope: { organization_id: string; network_id: number },
  { wallet_id, asset_type, asset_id }: RefreshTarget,
  addresses: Buffer[],
): Promise<BalanceQuery[]> {
  // Imported tokens have a token account (T), which a bare asset lacks.
  const imports = await listTokenImports(db, scope, { wallet_id, addresses })
  const tokens: BalanceQuery[] = imports.map(({ address, token_account_address, ...asset }) => ({
    address,
    asset,
    token_account_address,
  }))
  // Where tokens have accounts of their own (T), what a rule tracks is imported for each address.
  if (chain.parseToken && !chain.tokenAccounts)
    tokens.push(...(await queriesOfRules({ db }, scope, wallet_id, { addresses, imports })))
  const isNative = asset_type === chain.native.asset_type
  const native = isNative ? addresses.map((address) => ({ address, asset: chain.native })) : []
  // One asset: an import knows its token account, so it is preferred to the bare asset.
  if (asset_id !== undefined) {
    const [asset] = await findAssets(db, [asset_id])
    const one = [...native, ...tokens].filter(
      (query) => assetIdOf(scope.network_id, query.asset) === asset_id,
    )
    if (one.length > 0 || !asset) return one
    return addresses.map((address) => ({ address, asset }))
  }
  if (isNative) return [...native, ...tokens]
  // Nodes cannot list the items that an address holds: items seen before are read again.
  const held = await listHeldAssets(db, { wallet_id, addresses, asset_type })
  const fungible = contractTypes.find((type) => {
    const standard = chain.standards?.[type]
    return standard?.asset_type === asset_type && !standard.isCollection
  })
  const contracts = fungible ? await listContracts(db, scope, fungible) : []
  const all = new Map<string, BalanceQuery>()
  const add = (address: Buffer, asset: BalanceQuery['asset']) =>
    all.set(`${address.toString('hex')}/${assetIdOf(scope.network_id, asset)}`, { address, asset })
  for (const address of addresses)
    for (const { contract_address } of contracts)
      add(address, { asset_type, contract_address, token_id: 0n })
  for (const { address, ...asset } of held) add(address, asset)
  return [...all.values()]
}

/** What rules track at some addresses and is not imported for them alone. */
async function queriesOfRules(
  { db }: Pick<RefreshTools, 'db'>,
  scope: { organization_id: string; network_id: number },
  wallet_id: string,
  known: { addresses: readonly Buffer[]; imports: readonly (AssetKey & { address: Buffer })[] },
): Promise<BalanceQuery[]> {
  const rules = await listRuleAssets(db, scope, wallet_id)
  if (rules.length === 0) return []
  const nameOf = (address: Buffer, asset_id: string) => `${address.toString('hex')}/${asset_id}`
  const imported = new Set(
    known.imports.map((one) => nameOf(one.address, assetIdOf(scope.network_id, one))),
  )
  return known.addresses.flatMap((address) =>
    rules.flatMap(({ asset_id, ...asset }) =>
      imported.has(nameOf(address, asset_id)) ? [] : [{ address, asset }],
    ),
  )
}
