import type { BlockContent, BlockHeader, Movement } from '../../chains/chain.ts'
import type { AssetKey } from '../../contract/records/assets.ts'
import { dueBlockOf } from '../../domain/wallets/transfer-view.ts'
import { keyOf } from '../../lib/bytes.ts'
import { aheadBlockOf } from '../../storage/balances/changes.ts'
import type { BulkRow } from '../../storage/pg/bulk.ts'
import type { TrackedAddress } from '../../storage/wallets/addresses.ts'
import { type AssetInfo, assetIdOf } from '../../storage/wallets/assets.ts'

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
  // A block names the same object many times: most often no name has to be made.
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
