// One file per section of the configuration: its schema with the description, the default and the bounds of
// every key. It uses `typebox` and the helpers of `app/config` only. `docs/configuration.md`, the example
// file, the JSON schema and the error messages derive from these schemas, so a key cannot be undocumented.

import Type, { type TSchema } from 'typebox'
import { secretUrl } from '../keys.ts'
import type { Finding } from '../problem.ts'
import { shownWord } from '../problem.ts'
import { upstreams } from './upstream.ts'

const defaultNetwork = Type.String({
  description: 'Network that the operations of this chain use.',
  default: 'mainnet',
  minLength: 1,
})

const networks = <
  chainId extends TSchema,
  nodes extends TSchema,
  more extends Record<string, TSchema> = Record<never, TSchema>,
>(
  chain_id: chainId,
  upstreams: nodes,
  more = {} as more,
) =>
  Type.Record(
    Type.String({ pattern: '^[a-z0-9]+(?:-[a-z0-9]+)*$' }),
    Type.Object(
      { chain_id: Type.Optional(chain_id), ...more, upstreams },
      { description: 'One network of the chain.' },
    ),
    {
      description:
        'The networks by their segment in the gateway address, in lower case: `mainnet`, `ropsten` and so on.',
      minProperties: 1,
      entry: 'network',
    },
  )

const unset = 'what the first node says'

/** What a network that can verify more than structure has. */
const verification = (full: string) =>
  Type.Enum(['full', 'structural'], {
    description: `How the tracker verifies blocks: \`structural\`, that each can be read and is the child of the one before; \`full\`, also ${full}.`,
    default: 'structural',
  })

const evmKeys = {
  kind: Type.Literal('evm', { description: 'Family of the chain.', default: 'evm' }),
  prefix: Type.String({
    description: 'Method prefix of the chain, accepted beside the neutral `evm`.',
    default: 'eth',
    pattern: '^[a-z][a-z0-9]{0,31}$',
    expects: 'lower-case letters and digits, at most 32',
  }),
  default_network: defaultNetwork,
  networks: networks(
    Type.Integer({
      description: 'Chain id; a node that reports another one is never used.',
      unset,
      example: 1,
      minimum: 1,
      maximum: Number.MAX_SAFE_INTEGER,
    }),
    upstreams(['http', 'https', 'ws', 'wss'], 'http://127.0.0.1:8545'),
    {
      proof: Type.Enum(['root', 'bloom', 'none'], {
        description:
          'How the tracker proves what nodes say of a block: by the roots of its header; by its bloom, where a chain computes roots differently; or not at all, which trusts every node.',
        default: 'root',
      }),
      unproven_types: Type.Array(Type.Integer({ minimum: 0, maximum: 127 }), {
        description:
          'Transaction types of the network that Portolan cannot prove and that are accepted anyway. A block that has one of them is trusted as with `proof: bloom`, so a dishonest node can forge its payments. Types 0 to 4 and 126 (deposits of the OP stack) are always proved.',
        default: [],
        example: [123],
      }),
      verify_senders: Type.Boolean({
        description:
          'Whether the tracker recovers the sender of each transaction that concerns a tracked address from its signature, with `proof: root`. About 2 ms each. Disable it for a network with its own signing rules.',
        default: true,
      }),
      multicall: Type.String({
        description:
          'Address of Multicall3, through which balances are read together; where there is no such contract they are read in batches.',
        default: '0xca11bde05977b3631167028862be2a173976ca11',
        pattern: '^0x[0-9a-f]{40}$',
        expects: '`0x` and 40 lower-case hex digits',
      }),
    },
  ),
}

const evm = (description: string) => Type.Object(evmKeys, { description })

const query = (description: string) =>
  Type.Object(
    {
      ...evmKeys,
      record_pending: Type.Boolean({
        description:
          'Whether every pending transaction that nodes announce is recorded, which costs them some calls for each. Otherwise only transactions that this service sends or is asked for are recorded.',
        default: true,
      }),
    },
    { description },
  )

const ton = Type.Object(
  {
    kind: Type.Literal('ton', { description: 'Family of the chain.', default: 'ton' }),
    default_network: defaultNetwork,
    networks: networks(
      Type.Integer({
        description: 'Global id, -239 on the production network and -3 on the test network.',
        unset,
        example: -239,
      }),
      upstreams(['http', 'https'], 'http://127.0.0.1:8081/api/v2', {
        v3: Type.Boolean({
          description:
            'Whether API v3 of the node is used as well, where it offers one: it gives many balances at once. Blocks always come from API v2.',
          default: true,
        }),
        v3_url: Type.Optional(
          secretUrl(['http', 'https'], {
            description: 'Address of that API v3.',
            unset: '`v3` in the place of `v2` at the end of the url',
            example: 'http://127.0.0.1:8082/api/v3',
            mask: 'path',
          }),
        ),
      }),
    ),
  },
  {
    description:
      'Variant T, on TON. The nodes speak the toncenter HTTP API v2, and v3 where they offer it.',
  },
)

const sui = Type.Object(
  {
    kind: Type.Literal('sui', { description: 'Family of the chain.', default: 'sui' }),
    default_network: defaultNetwork,
    networks: networks(
      Type.String({
        description: 'Chain identifier: the first four bytes of the genesis digest in hex.',
        unset,
        example: '35834a8a',
        pattern: '^[0-9a-f]{8}$',
        expects: '8 lower-case hex digits',
      }),
      upstreams(['http', 'https'], 'http://127.0.0.1:9000', {
        transport: Type.Enum(['grpc', 'grpc-web'], {
          description:
            'Transport to the node: native gRPC over HTTP/2, or gRPC-web where a proxy in between supports HTTP/1.1 only.',
          default: 'grpc',
        }),
      }),
      {
        verification: verification(
          'that a quorum of the validators has signed each checkpoint, with its transactions, their status and their gas',
        ),
        trusted_checkpoint: Type.Optional(
          Type.String({
            description:
              'Last checkpoint of an epoch, as number and digest, from which on full verification follows the validators.',
            unset: 'the validators of the first epoch are what a node says',
            example: '15918264:9zCWa5uFw6ZZZLFzvKKCDWnQDtQTg2RX6zKQuCTzTJcB',
            pattern: '^[0-9]{1,15}:[1-9A-HJ-NP-Za-km-z]{32,44}$',
            expects: 'a number, a colon and a digest',
          }),
        ),
      },
    ),
  },
  { description: 'Variant S, on Sui. The nodes speak gRPC.' },
)

const polkadot = Type.Object(
  {
    kind: Type.Literal('polkadot', { description: 'Family of the chain.', default: 'polkadot' }),
    default_network: defaultNetwork,
    networks: networks(
      Type.String({
        description: 'Genesis hash of the chain that holds the balances (Asset Hub).',
        unset,
        example: '0x68d56f15f85d3136970ec16946040bc1752654e906147f7e43e9d539d7c3de2f',
        pattern: '^0x[0-9a-f]{64}$',
        expects: '`0x` and 64 lower-case hex digits',
      }),
      upstreams(['ws', 'wss'], 'ws://127.0.0.1:9944'),
      {
        ss58_prefix: Type.Optional(
          Type.Integer({
            description:
              'Prefix of the addresses in answers; addresses of any prefix are accepted.',
            unset: 'what the chain says (Polkadot: 0)',
            example: 0,
            minimum: 0,
            maximum: 16_383,
          }),
        ),
      },
    ),
  },
  { description: 'Variant P, on Polkadot. The nodes speak JSON-RPC over WebSocket.' },
)

const oneNode = (kind: string, url: string) => ({
  kind,
  networks: { mainnet: { upstreams: [{ url }] } },
})

/** The chains by their tag. A chain that is not listed is not served. */
export const chainsSection = Type.Object(
  {
    c: Type.Optional(evm('Variant C: wallets, transactions, contracts and the gateway.')),
    q: Type.Optional(query('The query chain Q, and its gateway.')),
    t: Type.Optional(ton),
    s: Type.Optional(sui),
    p: Type.Optional(polkadot),
  },
  {
    description: 'The chains by their tag. A chain that is not listed is not served.',
    example: {
      c: {
        networks: {
          mainnet: { upstreams: [{ url: 'http://127.0.0.1:8545' }] },
          ropsten: { upstreams: [{ url: 'http://127.0.0.1:18545' }] },
        },
      },
      q: oneNode('evm', 'http://127.0.0.1:28545'),
      t: oneNode('ton', 'http://127.0.0.1:8081/api/v2'),
      s: oneNode('sui', 'http://127.0.0.1:9000'),
      p: oneNode('polkadot', 'ws://127.0.0.1:9944'),
    },
  },
)

type Chains = Type.Static<typeof chainsSection>

/** The default network of a chain is one of its networks, and every part of a URL is sent. */
export const chainsRules = (chains: Chains): Finding[] => [
  ...networkRules(chains),
  ...grpcRules(chains),
]

const networkRules = (chains: Chains): Finding[] =>
  Object.entries(chains).flatMap(([tag, chain]) =>
    Object.hasOwn(chain.networks, chain.default_network)
      ? []
      : [
          {
            path: ['chains', tag, 'default_network'],
            must: `be one of the networks of the chain (${Object.keys(chain.networks).map(shownWord).join(', ')})`,
            value: chain.default_network,
          },
        ],
  )

// A path or a query is where some providers want their token. gRPC would drop it, so that every request fails.
const grpcRules = ({ s }: Chains): Finding[] =>
  Object.entries(s?.networks ?? {}).flatMap(([network, { upstreams }]) =>
    upstreams.flatMap(({ url, transport }, index): Finding[] => {
      const { pathname = '', search = '' } = URL.parse(url) ?? {}
      const isDropped = search !== '' || (transport === 'grpc' && /[^/]/.test(pathname))
      // A reference to a secret is checked when it is read.
      if (!/^https?:/.test(url) || !isDropped) return []
      const path = ['chains', 's', 'networks', network, 'upstreams', index, 'url']
      return [
        {
          path,
          must: 'have no path with native gRPC, and no query: send a token with `headers`, or use `transport: grpc-web` for a path',
        },
      ]
    }),
  )
