import type { WalletService } from '../contract/variant.ts'
import type { AddressRules, Family } from './chain.ts'
import { evmFamily } from './evm/family.ts'
import { createPolkadotFamily } from './polkadot/family.ts'
import { suiFamily } from './sui/family.ts'
import { createTonFamily } from './ton/family.ts'

/** The families by the service that stands on them. A new chain is one folder and one line here. */
export const families: Readonly<Record<WalletService, (rules?: AddressRules) => Family>> = {
  t: createTonFamily,
  s: () => suiFamily,
  p: createPolkadotFamily,
  c: () => evmFamily,
}

/** A place in the installation: a chain by its name, and a network of it unless it is the default one. */
export type PlaceName = { chain: string; network?: string | undefined }

/**
 * A family as it is used in one place. Two networks may hold the same transaction, so everywhere but on the default
 * network of the chain that has the name of its service the place is part of `transfer_id`.
 */
export const familyAt = <family extends Family>(
  family: family,
  { chain, network }: PlaceName,
): family => {
  if (chain === family.service && network === undefined) return family
  const place = network === undefined ? chain : `${chain}/${network}`
  return { ...family, transferKey: (view) => [place, ...family.transferKey(view)] }
}
