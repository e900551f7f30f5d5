// The chains of a configuration, one schema per family. Keys with the same meaning have the same name in every family
// (`chain_id`, `upstreams`, `verification`); what only one family has is declared in its schema, and not accepted elsewhere.
// Texts of `description`, `unset` and `expects` become `docs/configuration.md`, the example file and the messages of errors.

import Type, { type TSchema } from 'typebox'
import { secretUrl } from '../keys.ts'
import { isLiteServer } from '../lite-server-text.ts'
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
    // A segment of gateway addresses, so that no name needs escaping.
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

// The first answer pins the chain: a node that reports another one later is not used.
const unset = 'what the first node says'

/** What a network that can verify more than structure has. */
const verification = (full: string) =>
  Type.Enum(['full', 'structural'], {
    description: `How the tracker verifies blocks: \`structural\`, that each can be read and is the child of the one before; \`full\`, also ${full}.`,
    default: 'structural',
  })

const variantKeys = <letter extends string>(allowed: readonly letter[]) => ({
  variant: Type.Optional(
    Type.Enum([...allowed], {
      description:
        'Variant of the chain: C (EVM wallets), Q (EVM chain queries), T (TON), S (Sui) or P (Polkadot).',
      unset: 'what `variants` says; for the names `c`, `q`, `t`, `s` and `p` that letter',
      example: allowed[0],
    }),
  ),
  variants: Type.Optional(
    Type.Array(Type.Enum([...allowed]), {
      description:
        'Several variants of one chain, in place of `variant`. An EVM chain may offer both C and Q.',
      unset: 'the one of `variant`',
      example: [...allowed],
      minItems: 1,
    }),
  ),
  shared: Type.Boolean({
    description:
      'Whether the nodes may report the identity of another configured chain or network. Otherwise the second one is refused: its wallets would be tracked twice.',
    default: false,
  }),
})

// Shared by C and Q: one chain may offer both, with the same nodes.
const evmKeys = {
  ...variantKeys(['C', 'Q']),
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
          'Transaction types of the network that Portolan cannot prove and that are accepted anyway. A block that has one of them is trusted as with `proof: bloom`, so a dishonest node can forge its payments. Types 0 to 4 and 126 (deposits and messages from the other chain on the OP stack, Mantle, Scroll, Morph and Kroma) are proved unless they are listed.',
        default: [],
        example: [123],
      }),
      coin_contract: Type.Optional(
        Type.String({
          description:
            'Contract through which the coin of the network is also sent as a token, as on Celo. Its `Transfer` logs become records of the coin. Set it only for a contract that is part of the network: any other could report payments of coin that were never made.',
          unset: 'only values and calls move the coin',
          example: '0x471ece3750da237f93b8e339c536989b8978a438',
          pattern: '^0x[0-9a-f]{40}$',
          expects: '`0x` and 40 lower-case hex digits',
        }),
      ),
      // Senders are in no root: without this check a dishonest node could name any address as the sender.
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

/** A chain of the EVM family. */
export const evm = (description: string) => Type.Object(evmKeys, { description })

/** One that also offers the chain queries. */
export const query = (description: string) =>
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

/** A chain of TON. */
export const ton = Type.Object(
  {
    ...variantKeys(['T']),
    kind: Type.Literal('ton', { description: 'Family of the chain.', default: 'ton' }),
    default_network: defaultNetwork,
    networks: networks(
      Type.Integer({
        description: 'Global id, -239 on the production network and -3 on the test network.',
        unset,
        example: -239,
      }),
      upstreams(
        ['http', 'https', 'tcp'],
        'http://127.0.0.1:8081/api/v2',
        {
          kind: Type.Enum(['toncenter', 'liteserver'], {
            description:
              'Kind of the node: the toncenter HTTP API, or a lite server at `tcp://host:port` with its `key`, or at `host:port:key`.',
            default: 'toncenter',
          }),
          key: Type.Optional(
            Type.String({
              description: 'Public key of a lite server in base64, as a global config has it.',
              unset: 'the node is no lite server, or the key is in its `url`',
              example: 'n4VDnSCUuSpjnCyUk9e3QOOd6o0ItSWYbTnW3Wnn8wk=',
              pattern: '^[A-Za-z0-9+/]{43}=$',
              expects: '32 bytes in base64',
            }),
          ),
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
        },
        {
          description: 'The nodes of the network, beside those of `global_config`.',
          default: [],
          minItems: 0,
          example: [{ url: 'http://127.0.0.1:8081/api/v2' }],
        },
        {
          pattern: '^(?:\\[[0-9a-fA-F:.]+\\]|[^\\s/:@]+):[0-9]{1,5}:[A-Za-z0-9+/]{43}=$',
          expects: 'or is `host:port:key` of a lite server',
          matches: isLiteServer,
        },
      ),
      {
        global_config: Type.Optional(
          Type.String({
            description:
              'Global config of the network (`global.config.json`): its lite servers are nodes as well, and its `validator.init_block` is the `trusted_key_block` unless that is given.',
            unset: 'only `upstreams` are nodes',
            example: '/etc/ton/global.config.json',
            minLength: 1,
            path: true,
          }),
        ),
        verification: verification(
          'that validators have signed each masterchain block, with all shard blocks, transactions and balances of the coin. It needs lite servers',
        ),
        trusted_key_block: Type.Optional(
          Type.String({
            description:
              'Key block of the masterchain, as seqno, root hash and file hash, from which on full verification follows the validators.',
            unset: 'that of `global_config`, else the first validators are what a lite server says',
            example: `46894135:${'7e'.repeat(32)}:${'f1'.repeat(32)}`,
            pattern: '^[0-9]{1,10}:[0-9a-f]{64}:[0-9a-f]{64}$',
            expects: 'a number and two hashes of 64 lower-case hex digits, with colons between',
          }),
        ),
      },
    ),
  },
  {
    description:
      'Variant T, on TON. The nodes speak the toncenter HTTP API v2, and v3 where they offer it, or are lite servers.',
  },
)

/** A chain of Sui. */
export const sui = Type.Object(
  {
    ...variantKeys(['S']),
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
          'that a quorum of the validators has signed each checkpoint, with its transactions, their status and their gas, and what they moved for tracked accounts',
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

/** A chain of Polkadot. */
export const polkadot = Type.Object(
  {
    ...variantKeys(['P']),
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
        verification: verification(
          'that bodies have the root of their header, that events and balances are those of the state root, by proofs, and with `relay_upstreams` that blocks are final',
        ),
        relay_upstreams: Type.Optional(
          upstreams(
            ['ws', 'wss'],
            'ws://127.0.0.1:9945',
            {},
            {
              description:
                'Nodes of the relay chain. With full verification they prove which blocks are final.',
              unset: 'blocks are final where the nodes of the network say so',
              example: [{ url: 'ws://127.0.0.1:9945' }],
            },
          ),
        ),
        para_id: Type.Integer({
          description: 'Number of the chain on its relay chain; Asset Hub is 1000 on every one.',
          default: 1_000,
          minimum: 0,
          maximum: 2 ** 32 - 1,
        }),
        trusted_relay_block: Type.Optional(
          Type.String({
            description:
              'Final block of the relay chain, as number and hash, from which on full verification follows the authorities.',
            unset: 'the first authorities are what a node of the relay chain says',
            example: `28000000:0x${'5e'.repeat(32)}`,
            pattern: '^[0-9]{1,10}:0x[0-9a-f]{64}$',
            expects: 'a number, a colon, `0x` and 64 lower-case hex digits',
          }),
        ),
        ss58_prefix: Type.Optional(
          Type.Integer({
            description:
              'Prefix of the addresses in answers; addresses of any prefix are accepted.',
            unset: 'what the chain says (Polkadot: 0)',
            example: 0,
            minimum: 0,
            // Two bytes of an SS58 prefix have 14 bits.
            maximum: 16_383,
          }),
        ),
      },
    ),
  },
  { description: 'Variant P, on Polkadot. The nodes speak JSON-RPC over WebSocket.' },
)
