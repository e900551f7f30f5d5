import type { WalletService } from '../contract/variant.ts'
import type { Family } from './chain.ts'
import { evmFamily } from './evm/family.ts'
import { createPolkadotFamily } from './polkadot/family.ts'
import { suiFamily } from './sui/family.ts'
import { createTonFamily } from './ton/family.ts'

/** What differs between networks of one family. */
export type FamilyOptions = {
  /** T: addresses that are marked for test networks are refused. */
  production?: boolean
  /** P: the prefix of printed addresses. */
  ss58_prefix?: number
}

/** The families by the service that stands on them. A new chain is one folder and one line here. */
export const families: Readonly<Record<WalletService, (options?: FamilyOptions) => Family>> = {
  t: createTonFamily,
  s: () => suiFamily,
  p: createPolkadotFamily,
  c: () => evmFamily,
}
