/** The chains that can be set up, by tag. */
export const chainKinds = {
  c: {
    kind: 'evm',
    title: 'C: wallets and gateway on an EVM chain',
    example: 'http://127.0.0.1:8545',
  },
  q: { kind: 'evm', title: 'Q: queries on an EVM rollup', example: 'http://127.0.0.1:9545' },
  t: { kind: 'ton', title: 'T: wallets on TON', example: 'http://127.0.0.1:8081/api/v2' },
  s: { kind: 'sui', title: 'S: wallets on Sui', example: 'http://127.0.0.1:9000' },
  p: {
    kind: 'polkadot',
    title: 'P: wallets on Polkadot Asset Hub',
    example: 'ws://127.0.0.1:9944',
  },
} as const

/** The tag of a chain that can be set up. */
export type InitTag = keyof typeof chainKinds

// What the transports of each family accept.
const schemes: Readonly<Record<'evm' | 'ton' | 'sui' | 'polkadot', readonly string[]>> = {
  evm: ['http:', 'https:', 'ws:', 'wss:'],
  ton: ['http:', 'https:'],
  sui: ['http:', 'https:'],
  polkadot: ['ws:', 'wss:'],
}

/** What is wrong with the address of a node; undefined when nothing is. */
export function urlProblem(tag: InitTag, text: string): string | undefined {
  const { kind, example } = chainKinds[tag]
  const url = URL.canParse(text) ? new URL(text) : undefined
  const allowed = schemes[kind]
  if (url && allowed.includes(url.protocol)) return undefined
  return `"${text}" is not an address of such a node; they begin with ${allowed.map((scheme) => `${scheme}//`).join(', ')}, such as ${example}.`
}

/** A node that was asked, or could not be. */
export type CheckedNode = { url: string; chain_id?: number | string; problem?: string }

/** One network of a named chain. */
export type NamedNetwork = {
  nodes: CheckedNode[]
  /** What is known of the network, as comments. */
  notes: readonly string[]
  /** Settings that its blocks need. */
  settings: Readonly<Record<string, unknown>>
}

/** A chain with a name of its own. */
export type NamedChain = { variant: 'C'; networks: Record<string, NamedNetwork> }

/** What the file is written from. */
export type Answers = {
  chains: Partial<Record<InitTag, CheckedNode[]>>
  /** The chains with names of their own, by name. */
  named?: Readonly<Record<string, NamedChain>>
  database?: string
}
