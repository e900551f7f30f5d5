import type {
  BlockContent,
  BlockHeader,
  Chain,
  ChainBlock,
  Movement,
  Tracked,
} from '../../chains/chain.ts'
import type { AssetKey, AssetType } from '../../contract/records/assets.ts'
import { dueBlockOf } from '../../domain/wallets/transfer-view.ts'
import {
  createByteMap,
  createByteSet,
  distinctBytes,
  groupByBytes,
  keyOf,
} from '../../lib/bytes.ts'
import { aheadBlockOf } from '../../storage/balances/changes.ts'
import type { BulkRow } from '../../storage/pg/bulk.ts'
import type { Db } from '../../storage/pg/database.ts'
import { findTracked, type TrackedAddress } from '../../storage/wallets/addresses.ts'
import {
  type AssetInfo,
  assetIdOf,
  findTokenAccounts,
  findTokenImports,
} from '../../storage/wallets/assets.ts'
import { findWatched } from '../../storage/wallets/contracts.ts'
import { findTokenRules } from '../../storage/wallets/token-rules.ts'

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
  // Contracts first: `accounts` of a block lists only the participants of watched contracts, which
  // keeps the second statement small.
  const named = distinctBytes(blocks.flatMap((block) => block.contracts))
  const watched = await findWatched(
    trx,
    network_id,
    named.filter((contract) => contract.length > 0),
  )
  const contracts = createByteSet(watched.map(({ contract_address }) => contract_address))
  // Each address once: a busy contract occurs in most transactions of a block.
  const candidates = distinctBytes(blocks.flatMap((block) => [...block.accounts(contracts)]))
  // T: tokens move between token accounts. Look up which of the candidates belongs to a tracked
  // owner.
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
  // The assets of a block are the same objects: usually the look-up by identity is enough.
  const known = new Map<AssetKey, ReadonlyMap<string, AssetType> | undefined>()
  const watchersOf = (asset: AssetKey) => {
    if (!known.has(asset)) known.set(asset, watchers.get(asset.contract_address))
    return known.get(asset)
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
  // As text, because a set of buffers compares identities.
  const imported = new Set(
    imports.map(
      ({ organization_id, address, asset_id }) =>
        `${organization_id}/${keyOf(address)}/${asset_id}`,
    ),
  )
  // The metadata of a contract is the same for all organizations, so the last row wins.
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
      : (organization_id, _, asset) => watchersOf(asset)?.get(organization_id) === asset.asset_type,
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
  // Collects the tokens that no import of the address covers; the rules of wallets and
  // organizations decide about those.
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

/** The tracked addresses, tokens and contracts among those that some blocks name. */
export type Matches = {
  network_id: number
  /** The id of an asset; remembered, because a block names few assets many times. */
  idOf(asset: AssetKey): string
  /** The wallets that have an address. */
  walletsOf(address: Uint8Array): readonly TrackedAddress[]
  /** Whether an organization tracks this token for this address; asked for tokens only. */
  wants(organization_id: string, address: Uint8Array, asset: AssetKey, asset_id: string): boolean
  /** What a contract says of itself. */
  infoOf(contract_address: Uint8Array): AssetInfo | undefined
}

/** What one block adds to the tables. */
export type BlockRows = {
  assets: Map<string, AssetKey & Partial<AssetInfo>>
  transfers: BulkRow<'transfer'>[]
  changes: BulkRow<'balance_change'>[]
}

const isNative = ({ contract_address }: AssetKey) => contract_address.length === 0

/** Makes the rows of a block out of what concerns the tracked ones. Pure. */
export function matchBlock(block: BlockHeader, content: BlockContent, matches: Matches): BlockRows {
  const { network_id, idOf, walletsOf, wants, infoOf } = matches
  const rows: BlockRows = { assets: new Map(), transfers: [], changes: [] }
  const block_time = new Date(block.time)

  const isWanted = (organization_id: string, address: Buffer, asset: AssetKey, asset_id: string) =>
    isNative(asset) || wants(organization_id, address, asset, asset_id)
  const note = (asset: AssetKey, asset_id: string) => {
    if (!rows.assets.has(asset_id))
      rows.assets.set(asset_id, { ...asset, ...infoOf(asset.contract_address) })
  }

  // One row per wallet that tracks the address. `side` is part of the key: a movement between two
  // tracked addresses has a row on each side.
  const see = (movement: Movement, address: Buffer, side: 0 | 1, asset_id: string): void => {
    const { asset } = movement
    for (const { organization_id, wallet_id } of walletsOf(address)) {
      if (!isWanted(organization_id, address, asset, asset_id)) continue
      note(asset, asset_id)
      rows.transfers.push({
        wallet_id,
        block_time: movement.time === undefined ? block_time : new Date(movement.time),
        block_number: block.number,
        ordinal: movement.ordinal,
        side,
        organization_id,
        network_id,
        address,
        transaction_hash: movement.transaction_hash,
        asset_id,
        from: movement.from,
        to: movement.to,
        value: movement.value,
        transaction_fee: movement.transaction_fee,
        transfer_state: movement.failed ? 'TRANSFER_STATE_FAILED' : 'TRANSFER_STATE_SUCCESS',
        transfer_hash: movement.transfer_hash ?? null,
        external_hash: movement.external_hash ?? null,
        detail: movement.detail ?? null,
      })
    }
  }

  // A failed movement has moved nothing, so only the sender, who paid the fee, gets a record.
  for (const movement of content.movements) {
    const { from, to, only, failed } = movement
    const asset_id = idOf(movement.asset)
    if (only !== 'to') see(movement, from, 0, asset_id)
    if (only !== 'from' && !failed) see(movement, to, 1, asset_id)
  }
  for (const { address, asset, delta } of content.touched) {
    const asset_id = idOf(asset)
    for (const wallet of walletsOf(address)) {
      if (!isWanted(wallet.organization_id, address, asset, asset_id)) continue
      note(asset, asset_id)
      // A balance that is read, not summed, may be read before it is confirmed and kept until then.
      // Net changes need no reading.
      const ahead =
        delta === undefined ? aheadBlockOf(block.number, wallet.confirmation) : undefined
      rows.changes.push({
        wallet_id: wallet.wallet_id,
        address,
        asset_id,
        block_number: block.number,
        organization_id: wallet.organization_id,
        network_id,
        due_block: ahead ?? dueBlockOf(block.number, wallet.confirmation),
        delta: delta ?? null,
        ...(ahead !== undefined && { ahead: true }),
      })
    }
  }
  return rows
}

/** The ids of a chain's assets. */
export const createAssetIds = (network_id: number): ((asset: AssetKey) => string) => {
  const ids = new Map<string, string>()
  // A block names the same object many times: usually the look-up by identity is enough.
  const known = new Map<AssetKey, string>()
  return (asset) => {
    const same = known.get(asset)
    if (same !== undefined) return same
    const key = `${asset.asset_type}/${asset.token_id}/${keyOf(asset.contract_address)}`
    let id = ids.get(key)
    if (id === undefined) {
      id = assetIdOf(network_id, asset)
      ids.set(key, id)
    }
    known.set(asset, id)
    return id
  }
}
