import type { Chain } from '../../src/chains/chain.ts'
import type { Chains } from '../../src/domain/context.ts'

/** Hands one open chain to operations, whatever chain and network they name. */
export const oneChain = (network_id: number, chain: () => Chain, network = 'mainnet'): Chains => {
  const open = () => ({ network_id, name: { chain: chain().service, network }, chain: chain() })
  return { find: open, open: async () => open() }
}
