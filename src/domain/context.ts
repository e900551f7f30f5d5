import type { Chain } from '../chains/chain.ts'
import type { Quotas } from '../contract/quotas.ts'
import type { Role } from '../contract/roles.ts'
import type { Service, WalletService } from '../contract/variant.ts'
import type { Clock } from '../lib/clock.ts'
import type { Ids } from '../lib/ids.ts'
import type { Log } from '../lib/log.ts'
import type { EndpointRules } from '../lib/net/endpoint.ts'
import type { NetworkList } from '../lib/net/ip.ts'
import type { Sealer } from '../storage/access/seal.ts'
import type { Db } from '../storage/pg/database.ts'
import type { RateLimits } from './limits/resolve.ts'
import type { QuerySource } from './query/source.ts'

/** Who calls: a credential, its organization and what it may do. */
export type Principal = {
  credential_id: string
  organization_id: string
  role: Role
  /** Absent where the role alone decides. */
  restrictions?: Restrictions
}

/** What a credential may do less than its role. */
export type Restrictions = {
  /** Unix time in milliseconds from which on it opens nothing; Infinity for never. */
  expireAt: number
  /** Undefined for everything. */
  scopes: ReadonlySet<string> | undefined
  /** Undefined for everywhere. */
  clientNetworks: NetworkList | undefined
  /** The same as written. */
  allowed_client_networks: readonly string[] | undefined
}

/** A configured chain with the id of its rows. */
export type OpenChain = { network_id: number; network: string; chain: Chain }

/** The configured chains of the wallet services, each on its default network. */
export type Chains = { find(service: WalletService): OpenChain | undefined }

/** What the installation offers to every operation. Nothing is imported from a global. */
export type Installation = {
  db: Db
  clock: Clock
  ids: Ids
  sealer: Sealer
  log: Log
  /** Absent where no chain is configured, or none is needed. */
  chains?: Chains
  /** Absent where the query chain is not configured. */
  query?: QuerySource
  /** The limits of organizations without records, and the chains that count; absent in the terminal. */
  limits?: { defaults: RateLimits; chains: readonly string[] }
  /** The quotas of organizations without their own; those that are shipped when absent. */
  quotas?: Quotas
  /** What webhooks may reach; public https addresses when absent. */
  endpoints?: EndpointRules
}

/** What one call of an operation may use. */
export type Context = Installation & {
  principal: Principal
  service: Service
  operation: string
  /** Aborted when the caller hangs up or the service stops waiting. */
  signal: AbortSignal
  /**
   * To be called by an operation that creates, with its answer, in the transaction that creates: a
   * repetition with the same idempotency key gets that answer. Absent where the caller gave no key.
   */
  record?(db: Db, answer: unknown): Promise<void>
}

/** What an operation does. The request is checked and has its defaults; the answer is projected. */
export type Handler<request = never, response = unknown> = (
  context: Context,
  request: request,
) => Promise<response>
