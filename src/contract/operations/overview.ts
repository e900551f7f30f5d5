import Type from 'typebox'
import { Count, Id, optional, Timestamp, text, timeRange } from '../fields.ts'
import { operation } from '../operation.ts'
import { Credential, Organization } from '../records/admin.ts'
import { list, record } from '../variant.ts'

const orNull = <schema extends Type.TSchema>(schema: schema) => Type.Union([schema, Type.Null()])
// Text: the console reads JSON with JavaScript, whose numbers are exact up to 2^53 only.
const Height = Type.String({ description: 'the height of a block, in decimal digits' })
// Records of several networks are in one list, so each names its own.
const place = { chain: text, network: text }

/** A network of the installation. */
const ChainStatus = record('ChainStatus', {
  ...place,
  is_default_network: Type.Boolean(),
  kind: Type.String({ description: 'evm, ton, sui or polkadot' }),
  variant: Type.String({ description: 'letters of the operations it offers, such as C or CQ' }),
  is_tracked: Type.Boolean({ description: 'whether its blocks are read for wallets' }),
  block_number: orNull(Height),
  block_time: orNull(Timestamp),
  node_head: orNull(Height),
  lag_blocks: orNull(Height),
  health: Type.String({ description: 'ok, failing or stalled; idle where nothing is tracked' }),
  problem: Type.String({ description: 'for ROLE_ADMIN; empty while the network is well' }),
  reorganization_count: Count,
  gap_count: Count,
  chain_id: Type.Union([Count, Type.Null()], { description: 'of EVM networks, once it is known' }),
  symbol: Type.String({ description: 'of the native coin; empty where it is not known' }),
  decimals: Type.Integer({ description: 'of the native coin' }),
  explorer_url: Type.String({
    description: 'a public explorer, to which /tx/ and a hash are added; empty where none is known',
  }),
})

/** A node as the process sees it that answers. */
const Node = record('Node', {
  ...place,
  name: text,
  state: Type.Enum([
    ...['starting', 'healthy', 'degraded', 'open_circuit', 'wrong_chain', 'unreachable', 'idle'],
  ]),
  reason: text,
  head: orNull(Height),
  lag_blocks: orNull(Height),
  latency_ms: orNull(Type.Number()),
  error_rate: Type.Number(),
  score: orNull(
    Type.Number({
      description:
        'its latency in milliseconds, raised by errors: of nodes that can serve a call, those with a lower score are used more',
    }),
  ),
  breaker: text,
})

const GatewayStatus = record('GatewayStatus', {
  ...place,
  websocket_count: Count,
  subscription_count: Count,
  filter_count: Count,
  cache_bytes: Count,
  cache_hit_count: Count,
  cache_miss_count: Count,
})

const WebSocketClient = record('WebSocketClient', {
  ...place,
  organization_id: text,
  credential_id: text,
  client: Type.String({ description: 'the address that it connected from' }),
  open_time: Timestamp,
  subscriptions: list(
    record('SubscriptionCount', {
      name: Type.String({ description: 'such as newHeads or logs' }),
      subscription_count: Count,
    }),
  ),
  buffered_bytes: Type.Integer({ description: 'bytes that the client has not read yet' }),
})

const Problem = record('TrackingProblem', {
  kind: Type.String({ description: 'tracker_failing, tracker_stalled or gap' }),
  ...place,
  subject: text,
  detail: text,
  create_time: Timestamp,
  resolve_time: orNull(Timestamp),
})

// One row per minute for the whole installation. Counts of one organization are in GetUsage.
const MetricPoint = record('MetricPoint', {
  time: Timestamp,
  request_count: Count,
  error_count: Count,
  refused_count: Count,
  gateway_count: Count,
  gateway_error_count: Count,
  cache_hit_count: Count,
  cache_miss_count: Count,
  delivery_count: Count,
  delivery_failed_count: Count,
  p50_ms: orNull(Type.Number()),
  p99_ms: orNull(Type.Number()),
})

const HeadPoint = record('HeadPoint', {
  time: Timestamp,
  ...place,
  block_number: Height,
  lag_blocks: orNull(Height),
})

const SearchResult = record('SearchResult', {
  kind: Type.Enum([
    ...['wallet', 'address', 'transaction', 'managed_transaction', 'webhook', 'organization'],
  ]),
  ...place,
  id: Type.String({ description: 'the id, the address or the hash' }),
  title: text,
  wallet_id: Type.String({ description: 'empty where there is no wallet' }),
})

/** What a console needs beside the operations of the specification. */
export const overview = {
  GetCurrentCredential: operation({
    summary: 'Show the credential that signs the request, and its organization.',
    services: 'A',
    extension: true,
    request: {},
    response: {
      credential: Credential,
      organization: Organization,
      embedded: Type.Boolean({ description: 'whether local chains run beside the service' }),
    },
  }),
  ListChains: operation({
    summary: 'List the chains and networks of the installation with their heads.',
    description:
      'Nodes, problems and gaps are for ROLE_ADMIN; others get the names and the last tracked blocks.',
    services: 'A',
    extension: true,
    request: {},
    response: { chains: list(ChainStatus) },
  }),
  ListNodes: operation({
    summary: 'List the nodes and the state of the gateway.',
    description:
      'Of all processes of the installation that answer within half a second: counts are added up, and a node has the worst state that a process which uses it has seen.',
    services: 'A',
    role: 'ROLE_ADMIN',
    extension: true,
    request: {},
    response: { nodes: list(Node), gateways: list(GatewayStatus) },
  }),
  ListWebSocketClients: operation({
    summary: 'List the WebSockets of the gateway that are open, with their subscriptions.',
    description:
      'Of all processes of the installation that answer within half a second; the oldest first, at most 1,000. ROLE_ADMIN sees those of all organizations, or with `organization_id` those of one; others see their own.',
    services: 'A',
    extension: true,
    request: { organization_id: optional(Id) },
    response: { websocket_clients: list(WebSocketClient) },
  }),
  ListProblems: operation({
    summary: 'List problems of tracking: those that last, then the newest that are over.',
    services: 'A',
    role: 'ROLE_ADMIN',
    extension: true,
    request: {},
    response: { problems: list(Problem) },
  }),
  ListMetrics: operation({
    summary: 'List counts and latencies of the installation by minute.',
    description:
      'All processes together, for the last hour unless given, a day at most. Minutes are kept for two days. `request_count` counts operations, `gateway_count` calls of the gateway; latencies are of both.',
    services: 'A',
    role: 'ROLE_ADMIN',
    extension: true,
    request: timeRange,
    response: {
      resolution_seconds: Count,
      points: list(MetricPoint),
      heads: list(HeadPoint),
    },
  }),
  ListSearchResults: operation({
    summary: 'Find wallets, addresses and transactions of the organization on all chains.',
    description:
      'By an address or a hash in any form of its chain, by an id, or by a part of the name of a wallet. At most 50 results. ROLE_ADMIN also finds organizations.',
    services: 'A',
    extension: true,
    request: { query: Type.String({ minLength: 2, maxLength: 200 }) },
    response: { results: list(SearchResult) },
  }),
}
