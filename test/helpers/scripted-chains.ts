import type { Place } from '../../src/app/chain-openers.ts'
import { families } from '../../src/chains/registry.ts'
import { createScriptedChain, type ScriptedChain } from '../../src/chains/testing/scripted-chain.ts'
import type { WalletService } from '../../src/contract/variant.ts'
import type { Db } from '../../src/storage/pg/database.ts'
import { waitFor } from './wait-for.ts'

/** A chain in memory for each wallet service. */
export type ScriptedChains = { readonly [service in WalletService]: ScriptedChain }

/** Makes one chain of every family, on which every account has some coins. */
export const createScriptedChains = (): ScriptedChains => {
  const make = (service: WalletService) =>
    createScriptedChain({ family: families[service](), endowment: 1_000_000n })
  return { t: make('t'), s: make('s'), p: make('p'), c: make('c') }
}

/** Hands them to a service. */
export const placesOf = (chains: ScriptedChains): Place[] =>
  (Object.keys(chains) as WalletService[]).map((service) => ({
    ...{ chain: service, network: 'mainnet', service, isDefault: true },
    open: async () => chains[service],
  }))

/** Waits until every tracker has its first block: what is mined from then on is looked into. */
export const trackingBegins = async (db: Db, chains: ScriptedChains): Promise<void> => {
  const count = Object.keys(chains).length
  await waitFor(
    'trackers begin',
    async () =>
      (await db.selectFrom('tracker_cursor').select('network_id').execute()).length === count,
  )
}
