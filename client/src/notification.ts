import type {
  Catalogue,
  notificationTypes,
  OperationalEventName,
  operationalNotificationType,
} from './contract.ts'
import type { ItemOf } from './pages.ts'

type WalletService = keyof typeof notificationTypes

type Transfer = {
  t: ItemOf<Catalogue<'t'>['ListTransfers']['response']>
  s: ItemOf<Catalogue<'s'>['ListTransfers']['response']>
  p: ItemOf<Catalogue<'p'>['ListTransfers']['response']>
  c: ItemOf<Catalogue<'c'>['ListTransfers']['response']> & {
    transfer_metadata: { erc721?: Omitted; erc1155?: Omitted }
  }
}

/** Texts that are too long for a notification are empty; ListTransfers has them. */
type Omitted = { token_uri_omitted?: true; token_data_omitted?: true }

type Identifier<service extends WalletService> = service extends 's'
  ? { transaction_digest: string }
  : { transaction_hash: string }

/** What a notification or an event says of transfers. */
export type TransfersData<service extends WalletService> = Identifier<service> & {
  /** Sent by SendTestWebhook, about nothing. */
  test?: true
  confirmations: number
  /** The transfers were found after their block was stored. */
  backfilled?: true
  transfers: (Transfer[service] & { wallet_id: string })[]
}

/** What a notification or an event says of a managed transaction. */
export type StateChangeData = {
  transaction: Catalogue<'c'>['GetTransaction']['response']['transaction']
}

/** The body of a delivery from a webhook of one service. */
export type NotificationOf<service extends WalletService> = {
  webhook_id: string
  webhook_history_id: string
  notification_type: (typeof notificationTypes)[service]
  create_time: string
  /** `sequence` counts the notifications of the webhook without a gap. */
  data: { sequence: number } & (service extends 'c'
    ? TransfersData<service> | StateChangeData
    : TransfersData<service>)
}

/** The body of a delivery about an operational event, from a webhook that names WEBHOOK_EVENT_OPERATIONAL. */
export type OperationalNotification = {
  webhook_id: string
  webhook_history_id: string
  notification_type: typeof operationalNotificationType
  create_time: string
  data: {
    sequence: number
    operational_event: {
      /** The same at the beginning and at the end of an incident. */
      event_id: string
      event: OperationalEventName
      chain: string
      network: string
      organization_id: string | null
      subject: string
      detail: string
      create_time: string
      resolve_time: string | null
    }
  }
}

/** The body of a delivery; `notification_type` names the service, or says that it is an operational event. */
export type Notification =
  | { [service in WalletService]: NotificationOf<service> }[WalletService]
  | OperationalNotification
