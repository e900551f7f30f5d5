import { type Chain, findChain, hasWallets } from '../lib/chains.ts'
import { useAccount } from './context.ts'

/** The chains that a page can show, and the one of its address; undefined where the address has another. */
export function useChain(
  id: string | undefined,
  fits: (chain: Chain) => boolean = hasWallets,
): { chains: readonly Chain[]; chain: Chain | undefined } {
  const chains = useAccount().chains.filter(fits)
  return { chains, chain: id === undefined ? chains[0] : findChain(chains, id) }
}
