import type { Client, ItemOf } from '@portolan/client'

/** A chain and network of the installation. */
export type Chain = ItemOf<Awaited<ReturnType<Client['admin']['ListChains']>>>

/** A chain in addresses of the console: `c`, or `c:sepolia` where it is not the default network. */
export const chainId = ({
  chain,
  network,
  is_default_network,
}: Pick<Chain, 'chain' | 'network' | 'is_default_network'>): string =>
  is_default_network ? chain : `${chain}:${network}`

/** The chain that an address names. */
export const findChain = (chains: readonly Chain[], id: string): Chain | undefined =>
  chains.find((chain) => chainId(chain) === id) ??
  chains.find(({ chain, network }) => `${chain}:${network}` === id)

/** Whether wallets can be tracked on a chain. */
export const hasWallets = ({ variant }: Pick<Chain, 'variant'>): boolean => variant !== 'Q'

/** Whether a chain has managed transactions and contracts. */
export const isEvm = ({ kind }: Pick<Chain, 'kind'>): boolean => kind === 'evm'

/** The service of the catalogue whose operations a chain has. */
export const serviceOf = ({ variant }: Pick<Chain, 'variant'>): string =>
  variant.charAt(0).toLowerCase()

type Family = { name: string; symbol: string; decimals: number }

// The coins of EVM chains have many names; all have 18 decimals.
const families: Readonly<Record<string, Family>> = {
  evm: { name: 'EVM', symbol: 'native', decimals: 18 },
  ton: { name: 'TON', symbol: 'TON', decimals: 9 },
  sui: { name: 'Sui', symbol: 'SUI', decimals: 9 },
  polkadot: { name: 'Polkadot', symbol: 'DOT', decimals: 10 },
}

/** The family of a chain for people. */
export const familyName = (kind: string): string => families[kind]?.name ?? kind

/** The coin of a chain; in its smallest unit where the family is not known. */
export const coinOf = ({ kind }: Pick<Chain, 'kind'>): { symbol: string; decimals: number } =>
  families[kind] ?? { symbol: 'units', decimals: 0 }

/** The title of a chain: its name and, where there are several, its network. */
export const chainTitle = (chain: Chain): string =>
  chain.is_default_network ? chain.chain : `${chain.chain} ${chain.network}`

/** The asset types of a chain, the coin first. */
export function assetTypes(chain: Pick<Chain, 'kind' | 'variant'>): readonly string[] {
  const tag = serviceOf(chain).toUpperCase()
  return tag === 'C'
    ? ['ASSET_TYPE_C', 'ASSET_TYPE_ERC20', 'ASSET_TYPE_ERC721', 'ASSET_TYPE_ERC1155']
    : [`ASSET_TYPE_${tag}`]
}
