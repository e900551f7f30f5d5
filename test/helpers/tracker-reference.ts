import { createHash } from 'node:crypto'
import type { ScriptedBlock } from '../../src/chains/testing/scripted-block.ts'
import type { ScriptedChain } from '../../src/chains/testing/scripted-chain.ts'
import type { AssetKey } from '../../src/contract/records/assets.ts'
import { assetIdOf } from '../../src/storage/wallets/assets.ts'

/** Who tracked what at the moment when a block was stored. */
export type Snapshot = {
  /** By organization and address: the wallet, and which registration of the address it is. */
  addresses: ReadonlyMap<string, { wallet_id: string; registration: number }>
  /** By organization and contract: which registration of the contract it is. */
  contracts: ReadonlyMap<string, number>
  /** By organization, wallet (or none) and token: which registration of the rule it is (T, S). */
  rules: ReadonlyMap<string, number>
  webhooks: readonly ReferenceWebhook[]
}

/** Names a rule that tracks a token for a wallet, or without one for the organization. */
export const ruleOf = (organization_id: string, wallet_id: string, asset: AssetKey) =>
  `${organization_id}/${wallet_id}/${hex(asset.contract_address)}`

/** A webhook as the model sees it. */
export type ReferenceWebhook = {
  webhook_id: string
  organization_id: string
  wallet_id: string | null
  confirmation: number
  /** Whether it does not ask for transfers. */
  isSilent: boolean
}

/** One record that a list must have. */
export type ExpectedTransfer = {
  wallet_id: string
  organization_id: string
  transaction_hash: string
  block_number: number
  ordinal: number
  side: number
  asset_type: string
  value: string
  failed: boolean
}

/** A pair that some block has touched. */
export type ExpectedTouch = {
  wallet_id: string
  organization_id: string
  address: Buffer
  asset: AssetKey
  asset_id: string
  block_number: number
}

/** Whatever was stored, by the hash of the block. */
export type Processed = ReadonlyMap<string, Snapshot>

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex')

/** In T the receiver has a transaction of its own; the script makes its hash like this. */
const otherEnd = (hash: Buffer) => createHash('sha256').update(hash).update('to').digest()

/** Names an address or contract of an organization. */
export const own = (organization_id: string, bytes: Uint8Array) =>
  `${organization_id}/${hex(bytes)}`

/** The stored blocks as they stand on the chain now. */
export const storedBlocks = (
  chain: ScriptedChain,
  processed: Processed,
  head: number,
): [ScriptedBlock, Snapshot][] =>
  chain
    .canonical()
    .slice(0, head + 1)
    .flatMap((block) => {
      const snapshot = processed.get(hex(block.hash))
      return snapshot ? [[block, snapshot]] : []
    })

const allows = (
  snapshot: Snapshot,
  { organization_id, wallet_id }: { organization_id: string; wallet_id: string },
  asset: AssetKey,
): boolean =>
  asset.contract_address.length === 0 ||
  snapshot.contracts.has(own(organization_id, asset.contract_address)) ||
  snapshot.rules.has(ruleOf(organization_id, '', asset)) ||
  snapshot.rules.has(ruleOf(organization_id, wallet_id, asset))

/** All records of a block, computed from the script alone, one per movement and side. */
export const expectedTransfers = (
  chain: ScriptedChain,
  [block, snapshot]: [ScriptedBlock, Snapshot],
  organizations: readonly string[],
): ExpectedTransfer[] => {
  const found: ExpectedTransfer[] = []
  let place = 0
  for (const { hash, failed = false, movements = [] } of block.transactions) {
    for (const { from, to, value, asset = chain.native } of movements) {
      const ends = [{ address: from, side: 0 }, ...(failed ? [] : [{ address: to, side: 1 }])]
      for (const { address, side } of ends)
        for (const organization_id of address ? organizations : []) {
          const holder = snapshot.addresses.get(own(organization_id, address!))
          if (!holder || !allows(snapshot, { organization_id, ...holder }, asset)) continue
          const isSplit = chain.service === 't'
          found.push({
            wallet_id: holder.wallet_id,
            organization_id,
            transaction_hash: hex(isSplit && side === 1 ? otherEnd(hash) : hash),
            block_number: block.number,
            ordinal: isSplit ? place * 2 + side : place,
            side,
            asset_type: asset.asset_type,
            value: value.toString(),
            failed,
          })
        }
      place++
    }
  }
  return found
}

/** What a wallet's list must be: newest first, a movement inside the wallet once. */
export const expectedList = (
  transfers: readonly ExpectedTransfer[],
  wallet_id: string,
): ExpectedTransfer[] => {
  const mine = transfers.filter((transfer) => transfer.wallet_id === wallet_id)
  const place = ({ block_number, ordinal }: ExpectedTransfer) => `${block_number}/${ordinal}`
  const out = new Set(mine.filter(({ side }) => side === 0).map(place))
  return mine
    .filter((transfer) => transfer.side === 0 || !out.has(place(transfer)))
    .sort((a, b) => b.block_number - a.block_number || b.ordinal - a.ordinal)
}

/** The pairs of a block whose balance changed and whose tracking is unchanged since. */
export const expectedTouches = (
  chain: ScriptedChain,
  network_id: number,
  [block, then]: [ScriptedBlock, Snapshot],
  now: Snapshot,
): ExpectedTouch[] => {
  const found: ExpectedTouch[] = []
  const touch = (address: Buffer | undefined, asset: AssetKey) => {
    for (const [key, holder] of address ? then.addresses : []) {
      const [organization_id = '', account] = key.split('/')
      if (account !== hex(address!)) continue
      if (now.addresses.get(key)?.registration !== holder.registration) continue
      const contract = own(organization_id, asset.contract_address)
      const isNative = asset.contract_address.length === 0
      const isSame = (some: Snapshot['contracts'], other: Snapshot['contracts'], name: string) =>
        some.has(name) && some.get(name) === other.get(name)
      const isKept =
        isNative ||
        isSame(then.contracts, now.contracts, contract) ||
        isSame(then.rules, now.rules, ruleOf(organization_id, '', asset)) ||
        isSame(then.rules, now.rules, ruleOf(organization_id, holder.wallet_id, asset))
      if (!isKept) continue
      const asset_id = assetIdOf(network_id, asset)
      const { wallet_id } = holder
      const { number: block_number } = block
      found.push({ wallet_id, organization_id, address: address!, asset, asset_id, block_number })
    }
  }
  for (const { payer, fee = 0n, failed, movements = [] } of block.transactions) {
    if (fee > 0n) touch(payer, chain.native)
    for (const { from, to, asset = chain.native } of failed ? [] : movements) {
      touch(from, asset)
      touch(to, asset)
    }
  }
  return found
}
