import type { Chain } from '../chains/chain.ts'
import type { WalletAnswer, WalletOperation, WalletRequest } from '../contract/operations/calls.ts'
import type { Catalogue } from '../contract/operations/catalogue.ts'
import type { Quotas } from '../contract/quotas.ts'
import type { Service, WalletService } from '../contract/variant.ts'
import type { Clock } from '../lib/clock.ts'
import type { Ids } from '../lib/ids.ts'
import type { Log } from '../lib/log.ts'
import type { EndpointRules } from '../lib/net/endpoint.ts'
import type { Sealer } from '../storage/access/seal.ts'
import type { Db } from '../storage/pg/database.ts'
import type { Principal } from './access/principal.ts'
import type { RateLimits } from './limits/decision.ts'
import type { QuerySource } from './query/source.ts'

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
export type Context<answer = never> = Installation & {
  principal: Principal
  service: Service
  operation: string
  /** Aborted when the caller hangs up or the service stops waiting. */
  signal: AbortSignal
  /**
   * To be called by an operation that creates, with its answer, in the transaction that creates: a
   * repetition with the same idempotency key gets that answer. Absent where the caller gave no key.
   */
  record?(db: Db, answer: answer): Promise<void>
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
