import type { WalletService } from '../variant.ts'

/** Every state of a managed transaction (spec 3, docs/decisions/transactions.md). */
export const transactionStates = [
  'TRANSACTION_STATE_CREATED',
  'TRANSACTION_STATE_SIGNED',
  'TRANSACTION_STATE_SENDING',
  'TRANSACTION_STATE_SENT',
  'TRANSACTION_STATE_MINED',
  'TRANSACTION_STATE_CONFIRMED',
  'TRANSACTION_STATE_REVERTED',
  'TRANSACTION_STATE_REPLACED',
  'TRANSACTION_STATE_CANCELED',
] as const

/** The state of a managed transaction. */
export type TransactionState = (typeof transactionStates)[number]

/** One arrow of a state machine; `from` is null for creation. */
export type Transition<state extends string> = {
  from: readonly state[] | null
  on: TransactionEvent
  when: string
  to: state
}

/** How a managed transaction moves. Checks, docs and the diagram are made from this table. */
export const transactionTransitions: readonly Transition<TransactionState>[] = [
  {
    from: null,
    on: 'create',
    when: 'CreateTransaction or CreateTokenTransaction',
    to: 'TRANSACTION_STATE_CREATED',
  },
  {
    from: ['TRANSACTION_STATE_CREATED', 'TRANSACTION_STATE_SIGNED'],
    on: 'sign',
    when: 'SubmitTransactionSignature: the signature recovers to `from`',
    to: 'TRANSACTION_STATE_SIGNED',
  },
  {
    from: ['TRANSACTION_STATE_CREATED', 'TRANSACTION_STATE_SIGNED'],
    on: 'cancel',
    when: 'CancelTransaction, never broadcast',
    to: 'TRANSACTION_STATE_CANCELED',
  },
  {
    from: ['TRANSACTION_STATE_CREATED'],
    on: 'expire',
    when: 'no signature came in time (`transactions.created_expiry_hours`)',
    to: 'TRANSACTION_STATE_CANCELED',
  },
  {
    from: ['TRANSACTION_STATE_SIGNED'],
    on: 'send',
    when: 'SendTransaction: the raw bytes are written ahead',
    to: 'TRANSACTION_STATE_SENDING',
  },
  {
    from: ['TRANSACTION_STATE_SENDING'],
    on: 'accepted',
    when: 'a node accepts it or knows it already',
    to: 'TRANSACTION_STATE_SENT',
  },
  {
    from: ['TRANSACTION_STATE_SENDING'],
    on: 'refused',
    when: 'a refusal that leaves nothing in the pool',
    to: 'TRANSACTION_STATE_SIGNED',
  },
  {
    from: ['TRANSACTION_STATE_SENDING', 'TRANSACTION_STATE_SENT'],
    on: 'mined',
    when: 'its receipt appears',
    to: 'TRANSACTION_STATE_MINED',
  },
  {
    // With few confirmations the last three are no end: a reported state must stay true.
    from: [
      'TRANSACTION_STATE_MINED',
      'TRANSACTION_STATE_CONFIRMED',
      'TRANSACTION_STATE_REVERTED',
      'TRANSACTION_STATE_REPLACED',
    ],
    on: 'reorganized',
    when: 'its block, or the one of the other transaction, left the chain',
    to: 'TRANSACTION_STATE_SENT',
  },
  {
    from: ['TRANSACTION_STATE_MINED'],
    on: 'confirmed',
    when: 'the confirmation of the wallet is reached, status 1',
    to: 'TRANSACTION_STATE_CONFIRMED',
  },
  {
    from: ['TRANSACTION_STATE_MINED'],
    on: 'reverted',
    when: 'the confirmation of the wallet is reached, status 0',
    to: 'TRANSACTION_STATE_REVERTED',
  },
  {
    from: ['TRANSACTION_STATE_SENDING', 'TRANSACTION_STATE_SENT', 'TRANSACTION_STATE_MINED'],
    on: 'replaced',
    when: 'another transaction with the nonce has the confirmation',
    to: 'TRANSACTION_STATE_REPLACED',
  },
]

/** What moves a managed transaction. */
export type TransactionEvent =
  | 'create'
  | 'sign'
  | 'cancel'
  | 'expire'
  | 'send'
  | 'accepted'
  | 'refused'
  | 'mined'
  | 'reorganized'
  | 'confirmed'
  | 'reverted'
  | 'replaced'

/** Where an event leads from a state (null before creation); undefined where the table has no arrow. */
export const transactionStateAfter = (
  state: TransactionState | null,
  event: TransactionEvent,
): TransactionState | undefined =>
  transactionTransitions.find(
    ({ from, on }) => on === event && (state === null ? from === null : from?.includes(state)),
  )?.to

/** The state of a transfer in variant C (spec 3, docs/decisions/transfers.md). */
export const transferStates = [
  'TRANSFER_STATE_PENDING',
  'TRANSFER_STATE_SUCCESS',
  'TRANSFER_STATE_FAILED',
  'TRANSFER_STATE_REORGED',
] as const

/** The state of a transfer. */
export type TransferState = (typeof transferStates)[number]

/** The direction of a transfer in variant T, seen from the tracked account. */
export const transferTypes = ['TRANSFER_TYPE_INCOMING', 'TRANSFER_TYPE_OUTGOING'] as const

/** The direction of a transfer in variant T. */
export type TransferType = (typeof transferTypes)[number]

/** The direction of a transfer seen from a wallet or address (docs/webhooks.md); INTERNAL has both ends in it. */
export const transferDirections = [
  'TRANSFER_DIRECTION_INCOMING',
  'TRANSFER_DIRECTION_OUTGOING',
  'TRANSFER_DIRECTION_INTERNAL',
] as const

/** The direction of a transfer. */
export type TransferDirection = (typeof transferDirections)[number]

/** The delivery state of a notification (spec 3, docs/decisions/webhooks.md). */
export const webhookStatuses = [
  'WEBHOOK_STATUS_PENDING',
  'WEBHOOK_STATUS_IN_PROGRESS',
  'WEBHOOK_STATUS_COMPLETED',
  'WEBHOOK_STATUS_FAILED',
  'WEBHOOK_STATUS_ON_HOLD',
] as const

/** The state of the delivery of a notification. */
export type WebhookStatus = (typeof webhookStatuses)[number]

/** Whether a webhook delivers. */
export type WebhookState = 'WEBHOOK_STATE_ENABLED' | 'WEBHOOK_STATE_DISABLED'

/** What a webhook can notify of. Only variant C has managed transactions; the last one is for administrators. */
export const webhookEvents = [
  'WEBHOOK_EVENT_TRANSFER',
  'WEBHOOK_EVENT_TRANSACTION_STATE',
  'WEBHOOK_EVENT_OPERATIONAL',
  'WEBHOOK_EVENT_INSTALLATION',
] as const

/** What a webhook can notify of. */
export type WebhookEvent = (typeof webhookEvents)[number]

/** The same in the variants without managed transactions. */
export const transferEvents = [
  'WEBHOOK_EVENT_TRANSFER',
  'WEBHOOK_EVENT_OPERATIONAL',
  'WEBHOOK_EVENT_INSTALLATION',
] as const satisfies readonly WebhookEvent[]

/** What a webhook of each wallet service can notify of. */
export const webhookEventsOf: Readonly<Record<WalletService, readonly WebhookEvent[]>> = {
  ...{ t: transferEvents, s: transferEvents, p: transferEvents },
  c: webhookEvents,
}

/** What a webhook notifies of unless it names its events, as far as its service has them. */
export const defaultWebhookEvents: readonly WebhookEvent[] = [
  'WEBHOOK_EVENT_TRANSFER',
  'WEBHOOK_EVENT_TRANSACTION_STATE',
]

/** The notification type of each wallet service (spec 6.1). */
export const notificationTypes = {
  t: 'NOTIFICATION_TYPE_T_TRANSACTION_UPDATED',
  s: 'NOTIFICATION_TYPE_S_TRANSACTION_UPDATED',
  p: 'NOTIFICATION_TYPE_P_TRANSACTION_UPDATED',
  c: 'NOTIFICATION_TYPE_EVM_TRANSACTION_UPDATED',
} as const

/** The notification type of operational events, the same in every service. */
export const operationalNotificationType = 'NOTIFICATION_TYPE_OPERATIONAL_EVENT'

/** The type of a notification. */
export type NotificationType =
  | (typeof notificationTypes)[keyof typeof notificationTypes]
  | typeof operationalNotificationType

/** The names of operational events in notifications. */
export const operationalEventNames = [
  'gap_opened',
  'gap_closed',
  'tracker_failing',
  'tracker_stalled',
  'tracker_recovered',
  'node_lost',
  'node_recovered',
  'webhook_disabled',
  'webhook_enabled',
  'limit_near',
  'transaction_stuck',
  'transaction_moved',
  'balance_repaired',
  'sink_event_refused',
] as const

/** The name of an operational event. */
export type OperationalEventName = (typeof operationalEventNames)[number]

/** Which broker a sink publishes to. */
export const sinkTypes = ['SINK_TYPE_NATS', 'SINK_TYPE_KAFKA'] as const

/** Which broker a sink publishes to. */
export type SinkType = (typeof sinkTypes)[number]

/** How a sink authenticates to Kafka. */
export const saslMechanisms = ['PLAIN', 'SCRAM-SHA-256', 'SCRAM-SHA-512'] as const
