import { createEvmChain } from '../../chains/evm/chain.ts'
import { toHex } from '../../chains/hex.ts'
import type { Opener } from './opener.ts'

/** Variant C stands on the pool that its gateway uses as well. */
export const openC: Opener = async (config, { networks, clock }) => {
  const { c } = config.chains
  const pool = c && networks.poolOf('c', c.default_network)
  if (!c || !pool) return undefined
  const { proof, unproven_types, verify_senders, multicall } = c.networks[c.default_network]!
  const chain = createEvmChain({
    pool,
    prefix: c.prefix,
    clock,
    proof,
    unproven_types,
    verify_senders,
    multicall,
    onBroadcast: (_raw, hash) => networks.notifySent(toHex(hash), pool),
  })
  return { network: c.default_network, chain }
}
