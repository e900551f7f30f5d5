import type { Catalogue, Service } from './contract.ts'
import type { StateChangeData, TransfersData } from './notification.ts'

type WalletService = Exclude<Service, 'admin' | 'q'>

type Common<type extends string, data> = {
  type: type
  /** Present where the event is stored: `after` of the next connection. */
  id: string | undefined
  /** Counts the stored events of the organization on the network without a gap. */
  sequence: number | undefined
  chain: string
  network: string
  create_time: string
  data: data
}

type Delivery = {
  webhook_id: string
  webhook_history_id: string
  sequence: number
  attempt: number
  webhook_status: string
  status_code: number | null
  error: string
  duration_ms: number
}

type Live =
  | Common<'ready', Record<string, never>>
  | Common<'delivery', Delivery>
  | Common<'head', { block_number: string; block_time: string | null }>
  | Common<'reorganization', { from_block: string; to_block: string }>
  | Common<'problem', Catalogue<'admin'>['ListProblems']['response']['problems'][number]>
  | Common<'node', Catalogue<'admin'>['ListNodes']['response']['nodes'][number]>

type Stored<service extends WalletService> =
  | Common<'transfer', TransfersData<service>>
  | Common<'confirmation', TransfersData<service>>
  | Common<'retraction', TransfersData<service>>
  | (service extends 'c' ? Common<'transaction', StateChangeData> : never)

/** An event of a stream of one service; `type` distinguishes them. */
export type EventOf<service extends Service> =
  | Live
  | (service extends WalletService ? Stored<service> : never)

/** An event of the stream of all chains. */
export type StreamEvent = { [service in WalletService]: EventOf<service> }[WalletService]

/** The types of events. */
export type EventType = StreamEvent['type']

/** Which events, and from where on. */
export type EventsOptions = {
  /** The `id` of the last event that was handled; `0` for the oldest stored one. Only new events without it. */
  after?: string | number
  /** All unless given. */
  types?: readonly EventType[]
  /** Ends the iteration. */
  signal?: AbortSignal
  /** Called when a connection was lost or refused for now, before the next one; `ready` is its first event. */
  on_interrupt?: () => void
}
