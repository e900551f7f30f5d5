import { isDeepStrictEqual } from 'node:util'
import type { AddressRules, Chain } from '../../chains/chain.ts'
import type { Db } from '../../storage/pg/database.ts'
import { setAddressRules } from '../../storage/tracking/networks.ts'

/**
 * Stores the address rules of a chain once they are known and when they change. Chains may learn them with the first
 * block only, so it is called after each.
 */
export function createAddressRulesStore({
  db,
  network_id,
  chain,
}: {
  db: Db
  network_id: number
  chain: Pick<Chain, 'addressRules'>
}): () => Promise<void> {
  let stored: AddressRules | undefined
  return async () => {
    const rules = chain.addressRules?.()
    if (!rules || isDeepStrictEqual(rules, stored)) return
    await setAddressRules(db, network_id, rules)
    stored = rules
  }
}
