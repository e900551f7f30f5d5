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

const families: Readonly<Record<string, string>> = {
  evm: 'EVM',
  ton: 'TON',
  sui: 'Sui',
  polkadot: 'Polkadot',
}

/** The family of a chain for people. */
export const familyName = (kind: string): string => families[kind] ?? kind

/** The coin of a chain. */
export const coinOf = ({
  symbol,
  decimals,
}: Pick<Chain, 'symbol' | 'decimals'>): { symbol: string; decimals: number } => ({
  symbol: symbol || (decimals === 0 ? 'units' : 'native'),
  decimals,
})

/** A transaction or an address in a public explorer of the chain; undefined where none is known. */
export const explorerLink = (
  { explorer_url }: Pick<Chain, 'explorer_url'>,
  kind: 'tx' | 'address',
  id: string,
): string | undefined =>
  // From a table of the service, and still checked: a link must not be a script.
  /^https:\/\//.test(explorer_url)
    ? `${explorer_url.replace(/\/+$/, '')}/${kind}/${encodeURIComponent(id)}`
    : undefined

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
