import * as viemChains from 'viem/chains'

/** A chain as `viem/chains` describes it, as far as it is used here. */
type ViemChain = {
  id: number
  name: string
  nativeCurrency: { symbol: string }
  blockTime?: number
  testnet?: boolean
  blockExplorers?: { default: { url: string } }
  contracts?: Record<string, unknown>
  formatters?: unknown
}

/** One row: id, chain, network, title, symbol, block time in ms (0: not known), stack ('': plain EVM), explorer. */
type Row = [number, string, string, string, string, number, string, string]

const kebab = (key: string): string =>
  key
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1-$2')
    .replaceAll('_', '-')
    .toLowerCase()

// The test networks of Ethereum have names of their own.
const ofEthereum: ReadonlySet<string> = new Set(['sepolia', 'holesky', 'hoodi', 'goerli'])
// Nitro has transaction types of its own, which viem does not describe; every block begins with one. Beside the networks of
// Arbitrum itself these are the chains of its stack in OffchainLabs/arbitrum-token-bridge,
// packages/arb-token-bridge-ui/src/util/orbitChainsData.json and its history, but one that viem has as a chain of the OP stack.
const arbitrum: ReadonlySet<number> = new Set([
  ...[
    42_161, 42_170, 421_614, 140, 681, 1_625, 1_996, 2_730, 2_911, 12_324, 12_325, 33_139, 41_455,
  ],
  ...[41_923, 53_456, 53_457, 55_244, 63_157, 98_864, 98_865, 98_866, 98_867, 111_188, 181_228],
  ...[190_415, 631_571, 660_279, 6_985_385, 7_080_969, 37_714_555_429],
])

// Their block hash is not that of an Ethereum header, by the sources of their nodes: Avalanche, Moonbeam, Moonriver,
// Cronos, Kaia, Sei, Berachain, and test networks of theirs.
const ownHeader: ReadonlySet<number> = new Set([
  ...[43_114, 43_113, 1_284, 1_285, 1_287, 25, 338, 8_217, 1_001, 1_329, 1_328, 80_094, 80_069],
])

const entries = Object.entries(viemChains as Record<string, unknown>).filter(
  (entry): entry is [string, ViemChain] => typeof (entry[1] as ViemChain)?.id === 'number',
)
const mainnets = new Set(entries.flatMap(([key, chain]) => (chain.testnet ? [] : [kebab(key)])))

/** The chain and the network that a name of viem stands for: `baseSepolia` is `sepolia` of `base`. */
function placeOf(key: string, isTest: boolean): [string, string] {
  const name = kebab(key)
  if (name === 'mainnet') return ['ethereum', 'mainnet']
  if (ofEthereum.has(name)) return ['ethereum', name]
  if (!isTest) return [name, 'mainnet']
  const words = name.split('-')
  for (let end = words.length - 1; end > 0; end--) {
    const chain = words.slice(0, end).join('-')
    if (mainnets.has(chain)) return [chain, words.slice(end).join('-')]
  }
  return words.length > 1 ? [words.slice(0, -1).join('-'), words.at(-1)!] : [name, 'testnet']
}

function stackOf(chain: ViemChain): string {
  if (chain.formatters === viemChains.zksync.formatters) return 'zksync'
  if (chain.formatters === viemChains.celo.formatters) return 'celo'
  if (chain.contracts && 'gasPriceOracle' in chain.contracts) return 'op'
  if (ownHeader.has(chain.id)) return 'header'
  return arbitrum.has(chain.id) ? 'arbitrum' : ''
}

/** The table of known chains, made from `viem/chains`: one line per chain, ordered by id. */
export function knownChainsJson(): string {
  const rows = new Map<number, Row>()
  const taken = new Set<string>()
  // Of two names for one id, the shorter one is the chain itself, such as `base` and `basePreconf`.
  const ordered = entries.sort(([a], [b]) => a.length - b.length || (a < b ? -1 : 1))
  for (const [key, chain] of ordered) {
    if (rows.has(chain.id) || chain.name.includes('"')) continue
    const [name, network] = placeOf(key, chain.testnet === true)
    const path = `${name}/${network}`
    if (taken.has(path) || !/^[a-z0-9]+(?:-[a-z0-9]+)*$/.test(name)) continue
    taken.add(path)
    rows.set(chain.id, [
      ...([chain.id, name, network, chain.name, chain.nativeCurrency.symbol] as const),
      Math.round(chain.blockTime ?? 0),
      stackOf(chain),
      chain.blockExplorers?.default.url ?? '',
    ])
  }
  const lines = [...rows.values()].sort(([a], [b]) => a - b).map((row) => JSON.stringify(row))
  return `[\n${lines.join(',\n')}\n]\n`
}
