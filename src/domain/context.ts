import type { Chain } from '../chains/chain.ts'
import type { NodeStatus } from '../chains/nodes/status.ts'
import type { WalletAnswer, WalletOperation, WalletRequest } from '../contract/operations/calls.ts'
import type { Catalogue } from '../contract/operations/catalogue.ts'
import type { Quotas } from '../contract/quotas.ts'
import type { Service } from '../contract/variant.ts'
import type { Clock } from '../lib/clock.ts'
import type { Ids } from '../lib/ids.ts'
import type { Log } from '../lib/log.ts'
import type { EndpointRules } from '../lib/net/endpoint.ts'
import type { Sealer } from '../storage/access/seal.ts'
import type { GatewayCounts } from '../storage/metrics/gateway-reports.ts'
import type { WebSocketClient } from '../storage/metrics/websocket-clients.ts'
import type { Db } from '../storage/pg/database.ts'
import type { Replicas } from '../storage/pg/replicas.ts'
import type { AccessChange } from '../storage/redis/changes.ts'
import type { NetworkName } from '../storage/tracking/networks.ts'
import type { Principal } from './access/principal.ts'
import type { Concerns } from './audit/event.ts'
import type { BulkTurns } from './bulk-turns.ts'
import type { RateLimits } from './limits/decision.ts'
import type { QuerySource } from './query/source.ts'

/** A network that is tracked, with the id of its rows. */
export type OpenChain = { network_id: number; name: NetworkName; chain: Chain }

/** The networks on which wallets are tracked, by the name of the chain and of the network or the default one. */
export type Chains = {
  find(chain: string, network?: string): OpenChain | undefined
  /** Begins to track a configured network that is not tracked yet; undefined where it is not configured. */
  open(chain: string, network?: string): Promise<OpenChain | undefined>
  /** The default network of a configured chain. */
  defaultOf?(chain: string): string | undefined
}

/** The networks that offer the chain queries. */
export type Queries = {
  find(chain: string, network?: string): QuerySource | undefined
  /** Opens a configured network that was not used yet; undefined where it is not configured. */
  open(chain: string, network?: string): Promise<QuerySource | undefined>
}

/** A network of the installation as this process knows it. */
export type ChainOverview = NetworkName & {
  isDefault: boolean
  kind: string
  /** Letters of the variants that it offers. */
  variant: string
  /** Undefined where wallets are not tracked. */
  network_id: number | undefined
  /** Of EVM networks, from the configuration or the nodes. */
  chain_id: number | undefined
  /** The newest block of the nodes; null where this process has not asked. */
  node_head: number | null
  health: string
  problem: string
  reorganizations: number
}

/** A network and its nodes. */
export type NetworkNodes = NetworkName & { upstreams: readonly NodeStatus[] }

/** What this process knows of chains, nodes and the gateway. */
export type Overview = {
  /** Whether local chains run beside the service. */
  isEmbedded: boolean
  chains(): ChainOverview[]
  nodes(): NetworkNodes[]
  gateways(): GatewayCounts[]
  /** The open WebSockets of this process, of one organization or of all. */
  webSockets(organization_id: string | undefined): WebSocketClient[]
  /** The name of this process among those that report to each other. */
  holder: string
}

/** What the installation offers to every operation. Nothing is imported from a global. */
export type Installation = {
  db: Db
  /** The database for the calls of one organization, which must not use up all connections. */
  shareOf?(organization_id: string): Db
  /** Absent where organizations do not call beside each other. */
  bulkTurns?: BulkTurns
  /** Absent where no replica is configured. */
  replicas?: Replicas
  clock: Clock
  ids: Ids
  sealer: Sealer
  log: Log
  /** Absent where no chain is configured, or none is needed. */
  chains?: Chains
  /** Absent where no chain offers the chain queries. */
  queries?: Queries
  /** Absent in the terminal. */
  overview?: Overview
  /** The limits of organizations without records, and the chains that count; absent in the terminal. */
  limits?: { defaults: RateLimits; chains: readonly string[] }
  /** The quotas of organizations without their own; those that are shipped when absent. */
  quotas?: Quotas
  /** What webhooks may reach; public https addresses when absent. */
  endpoints?: EndpointRules
  /** A second way to all processes, beside the notifications of the database; absent without Redis. It takes a bounded time. */
  publishChange?(change: AccessChange): Promise<void>
}

/** What one call of an operation may use. */
export type Context<answer = never> = Installation & {
  principal: Principal
  /** The section of the catalogue that the operation is in. */
  service: Service
  /** Name of the chain in the address; the service itself for administration. */
  chain: string
  /** The network in the address; undefined means the default one of the chain. */
  network?: string | undefined
  /** What chain queries read from, in their calls. */
  query?: QuerySource | undefined
  operation: string
  /** Aborted when the caller hangs up or the service stops waiting. */
  signal: AbortSignal
  /**
   * To be called by an operation that creates, with its answer, in the transaction that creates: a
   * repetition with the same idempotency key gets that answer. Absent where the caller gave no key.
   */
  record?(db: Db, answer: answer): Promise<void>
  /**
   * To be called by an operation that changes what its request does not name the organization of, once the caller may
   * know of it: the audit log has the event at that organization, whether the change succeeds or not.
   */
  concerns?: Concerns
}

/** What an operation does. The request is checked and has its defaults; the answer is projected. */
export type Handler<request = never, answer = unknown> = (
  context: Context<answer>,
  request: request,
) => Promise<answer>

/** The handler of a wallet operation: one for all variants that offer it. */
export type WalletHandler<name extends WalletOperation> = Handler<
  WalletRequest<name>,
  WalletAnswer<name>
>

/** The handler of an operation of administration. */
export type AdminHandler<name extends keyof Catalogue<'admin'>> = Handler<
  Catalogue<'admin'>[name]['request'],
  Catalogue<'admin'>[name]['response']
>

/** The handler of a chain query. */
export type QueryHandler<name extends keyof Catalogue<'q'>> = Handler<
  Catalogue<'q'>[name]['request'],
  Catalogue<'q'>[name]['response']
>
