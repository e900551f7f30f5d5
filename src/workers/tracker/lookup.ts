import type { BlockContent, Chain, ChainBlock, Tracked } from '../../chains/chain.ts'
import type { AssetKey, AssetType } from '../../contract/records/assets.ts'
import {
  createByteMap,
  createByteSet,
  distinctBytes,
  groupByBytes,
  keyOf,
} from '../../lib/bytes.ts'
import type { Db } from '../../storage/pg/database.ts'
import { findTracked } from '../../storage/wallets/addresses.ts'
import {
  type AssetInfo,
  findTokenAccounts,
  findTokenImports,
} from '../../storage/wallets/assets.ts'
import { findWatched } from '../../storage/wallets/contracts.ts'
import { findTokenRules } from '../../storage/wallets/token-rules.ts'
import { createAssetIds, type Matches } from './match.ts'

/**
 * Asks once for all blocks of a batch who tracks what they name. The cost follows the blocks, not
 * the number of tracked addresses, and nothing is kept in memory: what was registered before this
 * statement counts from this block on.
 */
export async function lookUp(
  trx: Db,
  { network_id, chain }: { network_id: number; chain: Chain },
  blocks: readonly ChainBlock[],
): Promise<{ tracked: Tracked; matches: Matches }> {
  const named = distinctBytes(blocks.flatMap((block) => block.contracts))
  const watched = await findWatched(
    trx,
    network_id,
    named.filter((contract) => contract.length > 0),
  )
  const contracts = createByteSet(watched.map(({ contract_address }) => contract_address))
  const candidates = distinctBytes(blocks.flatMap((block) => [...block.accounts(contracts)]))
  const tokenAccounts = chain.tokenAccounts
    ? await findTokenAccounts(trx, network_id, candidates)
    : []
  const owners = tokenAccounts.map(({ owner }) => owner)
  const asked = owners.length > 0 ? distinctBytes([...candidates, ...owners]) : candidates
  const rows = await findTracked(trx, network_id, asked)
  const walletsOf = groupByBytes(rows, ({ address }) => address)
  const imports = chain.parseToken
    ? await findTokenImports(trx, network_id, distinctBytes(rows.map(({ address }) => address)))
    : []

  // By organization, as what it has registered the contract.
  const watchers = createByteMap<Map<string, AssetType>>()
  const assetTypes = createByteMap<Set<AssetType>>()
  for (const { organization_id, contract_address, contract_type } of watched) {
    const asset_type = chain.standards?.[contract_type].asset_type
    if (!asset_type) continue
    watchers.getOrSet(contract_address, new Map()).set(organization_id, asset_type)
    assetTypes.getOrSet(contract_address, new Set()).add(asset_type)
  }
  const accountsOf = groupByBytes(tokenAccounts, ({ account }) => account)
  const tracked: Tracked = {
    accounts: { has: (address) => walletsOf(address).length > 0, size: rows.length },
    contracts,
    assetTypesOf: (contract) => assetTypes.get(contract) ?? [],
    tokenAccount: (account) =>
      accountsOf(account).map(({ owner, asset_type, contract_address, token_id }) => ({
        owner,
        asset: { asset_type, contract_address, token_id },
      })),
  }
  const imported = new Set(
    imports.map(
      ({ organization_id, address, asset_id }) =>
        `${organization_id}/${keyOf(address)}/${asset_id}`,
    ),
  )
  const infos = createByteMap<AssetInfo | undefined>()
  for (const { contract_address, contract_metadata } of watched)
    infos.set(contract_address, toInfo(contract_metadata))
  const matches: Matches = {
    network_id,
    idOf: createAssetIds(network_id),
    walletsOf,
    wants: chain.parseToken
      ? (organization_id, address, _, asset_id) =>
          imported.has(`${organization_id}/${keyOf(address)}/${asset_id}`)
      : (organization_id, _, { contract_address, asset_type }) =>
          watchers.get(contract_address)?.get(organization_id) === asset_type,
    infoOf: (contract_address) => infos.get(contract_address),
  }
  return { tracked, matches }
}

/**
 * Adds the tokens that are tracked for whole wallets and organizations (S). Asked after the blocks are
 * decoded, and only where a tracked address has a token that is not imported for it alone. Where tokens
 * have accounts of their own (T), an address is followed by an import in any case.
 */
export async function addTokenRules(
  trx: Db,
  chain: Chain,
  matches: Matches,
  contents: readonly { content: BlockContent }[],
): Promise<Matches> {
  if (!chain.parseToken || chain.tokenAccounts) return matches
  const { network_id, idOf, walletsOf, wants } = matches
  const asset_ids = new Set<string>()
  const organization_ids = new Set<string>()
  const look = (address: Buffer, asset: AssetKey): void => {
    if (asset.contract_address.length === 0) return
    const asset_id = idOf(asset)
    for (const { organization_id } of walletsOf(address)) {
      if (wants(organization_id, address, asset, asset_id)) continue
      asset_ids.add(asset_id)
      organization_ids.add(organization_id)
    }
  }
  for (const { content } of contents) {
    for (const { asset, from, to } of content.movements) {
      look(from, asset)
      look(to, asset)
    }
    for (const { address, asset } of content.touched) look(address, asset)
  }
  if (asset_ids.size === 0) return matches
  const rules = await findTokenRules(trx, network_id, {
    asset_ids: [...asset_ids],
    organization_ids: [...organization_ids],
  })
  if (rules.length === 0) return matches
  const known = new Set(
    rules.map((rule) => `${rule.organization_id}/${rule.wallet_id ?? ''}/${rule.asset_id}`),
  )
  return {
    ...matches,
    wants: (organization_id, address, asset, asset_id) =>
      wants(organization_id, address, asset, asset_id) ||
      known.has(`${organization_id}//${asset_id}`) ||
      walletsOf(address).some(
        (wallet) =>
          wallet.organization_id === organization_id &&
          known.has(`${organization_id}/${wallet.wallet_id}/${asset_id}`),
      ),
  }
}

/** What stored metadata says of a token, whatever its standard. */
function toInfo(metadata: unknown): AssetInfo | undefined {
  const [info] = Object.values((metadata ?? {}) as Record<string, Partial<AssetInfo>>)
  if (!info) return undefined
  const { name = null, symbol = null, decimals = null } = info
  return { name, symbol, decimals }
}
