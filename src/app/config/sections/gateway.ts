// The gateway. Bounds with "per key" protect tenants from each other, the others protect the process; both are checked
// before a node is called.

import Type from 'typebox'
import { notificationBuffer } from '../../../contract/operations/gateway.ts'
import type { Finding } from '../problem.ts'

// They act on keys, on the node itself or on its chain: no gateway for many should pass them on.
const forbidden =
  /^(?:admin|miner|personal|engine|clique|anvil|hardhat)_|^evm_(?:mine|revert|snapshot|set|increase)|_(?:accounts|coinbase|mining|hashrate|getWork|sendTransaction|(?:sign|submit)\w*)$/
// Of the debugger only what reads: geth has methods there that move the head and write files.
const debugReads =
  /^debug_(?:trace(?:Transaction|Call|CallMany|Block|BlockByNumber|BlockByHash|Chain)|getRaw(?:Block|Header|Receipts|Transaction)|getBadBlocks|getModifiedAccountsBy(?:Hash|Number)|getAccessibleState|storageRangeAt|accountRange|accountAt|intermediateRoots|preimage|executionWitness(?:ByBlockHash)?)$/
const isForbidden = (name: string): boolean =>
  forbidden.test(name) || (name.startsWith('debug_') && !debugReads.test(name))

/** The node gateway. */
export const gatewaySection = Type.Object(
  {
    allowed_methods: Type.Array(Type.String({ pattern: '^[a-z0-9]+_\\w+$' }), {
      description:
        'Read methods that the gateway passes on beside those of the specification. `evm_` stands for the prefix of the chain. `txpool_`, `trace_` and the reading methods of `debug_` can be named too; they can cost a node much. Methods of accounts, of the node itself, and those of its debugger that change it, are never passed on.',
      default: [
        'evm_chainId',
        'evm_getBlockReceipts',
        'evm_feeHistory',
        'evm_maxPriorityFeePerGas',
        'evm_blobBaseFee',
        'evm_getProof',
        'evm_createAccessList',
        'evm_simulateV1',
        'web3_sha3',
      ],
      expects: 'names of methods such as `evm_getProof` or `debug_traceTransaction`',
    }),
    batch_limit: Type.Integer({
      description: 'Calls that one batch may hold.',
      default: 1000,
      minimum: 1,
      maximum: 100_000,
    }),
    body_limit_bytes: Type.Integer({
      description: 'Largest request to the gateway, in bytes; a larger one is answered with 413.',
      default: 5_242_880,
      minimum: 1024,
      maximum: 268_435_456,
    }),
    batch_response_limit_bytes: Type.Integer({
      description: 'Largest answer to a batch, in bytes; calls beyond it are refused one by one.',
      default: 26_214_400,
      minimum: 1024,
      maximum: 268_435_456,
    }),
    timeout_seconds: Type.Integer({
      description: 'Time that the nodes have to answer a call, over all attempts.',
      default: 30,
      minimum: 1,
      maximum: 600,
    }),
    cache_bytes: Type.Integer({
      description: 'Memory for answers that can be given again, per network; 0 keeps none.',
      default: 67_108_864,
      minimum: 0,
      maximum: 17_179_869_184,
    }),
    finality_depth: Type.Optional(
      Type.Integer({
        description: 'Blocks on top of a block after which it counts as final.',
        unset:
          'what the nodes report as `finalized`, and 256 blocks at most; 64 blocks where the chain has no such tag',
        example: 64,
        minimum: 1,
        maximum: 10_000,
      }),
    ),
    sleep_after_minutes: Type.Integer({
      description:
        'Minutes without use after which the nodes of a network are disconnected that only the gateway serves. The next call connects them again. 0 connects all nodes at the start and keeps them connected.',
      default: 10,
      minimum: 0,
      maximum: 10_080,
    }),
    logs_max_range: Type.Integer({
      description: 'Blocks that one call of `getLogs` may cover.',
      default: 10_000,
      minimum: 1,
      maximum: 10_000_000,
    }),
    connections_per_key: Type.Integer({
      description: 'WebSockets that one API key may have open.',
      default: 1_000,
      minimum: 1,
      maximum: 1_000_000,
    }),
    subscriptions_per_key: Type.Integer({
      description: 'Subscriptions that one API key may have over all its WebSockets, per network.',
      default: 2_000,
      minimum: 1,
      maximum: 10_000_000,
    }),
    filters_per_key: Type.Integer({
      description: 'Filters that one API key may have, per network.',
      default: 500,
      minimum: 1,
      maximum: 1_000_000,
    }),
    filter_terms_per_key: Type.Integer({
      description:
        'Addresses and topics that all filters and subscriptions of one API key may hold, over all networks; each filter and subscription counts as 10 more. One takes about 250 bytes of memory.',
      default: 100_000,
      minimum: 10,
      maximum: 1_000_000_000,
    }),
    filter_terms_per_organization: Type.Integer({
      description: 'The same for all API keys of one organization together.',
      default: 200_000,
      minimum: 10,
      maximum: 1_000_000_000,
    }),
    notifications_limit_bytes: Type.Integer({
      description: `Bytes that may wait for a WebSocket client that does not read; beyond them, or at ${notificationBuffer.toLocaleString('en')} notifications, it is closed.`,
      default: 67_108_864,
      minimum: 65_536,
      maximum: 1_073_741_824,
    }),
  },
  { description: 'The node gateway.' },
)

/** Some methods must not be reachable by any caller. */
export const gatewayRules = ({ allowed_methods }: Type.Static<typeof gatewaySection>): Finding[] =>
  allowed_methods.flatMap((name, index) =>
    isForbidden(name)
      ? [
          {
            path: ['gateway', 'allowed_methods', index],
            must: 'not be a method of accounts, of the node itself, or of its debugger that does more than read',
            value: name,
          },
        ]
      : [],
  )
