import Type from 'typebox'
import {
  Confirmation,
  Count,
  Endpoint,
  extension,
  HeaderKey,
  HeaderValue,
  Id,
  optional,
  Pagination,
  page,
  Timestamp,
  TransactionId,
  text,
  timeRange,
  UnixTime,
} from '../fields.ts'
import { countedFailures, secretOverlapHours } from '../limits.ts'
import { operation } from '../operation.ts'
import { transferEvents, webhookEvents, webhookStatuses } from '../records/states.ts'
import { each, list, only, record } from '../variant.ts'

// Null where it has not happened, in contrast to a text that is empty.
const MaybeTime = Type.Union([Timestamp, Type.Null()])

/** Spec 2.11. */
export const WebhookHeader = record('WebhookHeader', {
  webhook_header_id: text,
  webhook_id: Type.String({ description: 'empty when the header applies to all webhooks' }),
  header_key: text,
  header_value: text,
})

/** Spec 2.11. */
export const WebhookHistory = record('WebhookHistory', {
  webhook_history_id: text,
  webhook_id: text,
  webhook_status: Type.Enum(webhookStatuses),
  notification_type: text,
  delivery_count: Count,
  delivery_time: MaybeTime,
  create_time: extension(Timestamp),
  data: Type.Object({}, { additionalProperties: true }),
})

// C has managed transactions and therefore one more event than the other variants.
const about = 'operational events of the organization, or as an administrator of the installation'
const PlainEvents = Type.Array(Type.Enum(transferEvents), {
  ...{ minItems: 1, maxItems: transferEvents.length, uniqueItems: true },
  description: `what it notifies of: transfers unless given; ${about}`,
})
const AllEvents = Type.Array(Type.Enum(webhookEvents), {
  ...{ minItems: 1, maxItems: webhookEvents.length, uniqueItems: true },
  description: `what it notifies of: transfers and states of managed transactions unless given; ${about}`,
})
/** What a webhook or a sink notifies of. */
export const Events = each({ T: PlainEvents, S: PlainEvents, P: PlainEvents, C: AllEvents })
const OptionalEvents = each({
  T: optional(extension(PlainEvents)),
  S: optional(extension(PlainEvents)),
  P: optional(extension(PlainEvents)),
  C: optional(extension(AllEvents)),
})

/** The events of a new sink. */
export const SinkEvents = each({
  T: optional(PlainEvents),
  S: optional(PlainEvents),
  P: optional(PlainEvents),
  C: optional(AllEvents),
})

const Webhook = record('Webhook', {
  webhook_id: text,
  wallet_id: Type.String({ description: 'empty when it covers all wallets' }),
  webhook_endpoint: text,
  confirmation: Type.Integer(),
  events: Events,
  enabled: Type.Boolean(),
  disable_reason: text,
  success_rate: Type.Union([Type.Number(), Type.Null()]),
  last_error: text,
  failed_count: Type.Integer({
    minimum: 0,
    description: `notifications that no attempt is left for, counted up to ${countedFailures}`,
  }),
  create_time: Timestamp,
})

// Values of custom headers are secrets of the receiver. They are masked when an attempt is stored, not when it is read.
const AttemptHeader = record('AttemptHeader', {
  header_key: text,
  header_value: text,
  is_masked: Type.Boolean({ description: 'whether the value is not kept' }),
})

const WebhookAttempt = record('WebhookAttempt', {
  attempt: Count,
  attempt_time: Timestamp,
  status_code: Type.Union([Type.Integer(), Type.Null()]),
  duration_ms: Count,
  error: text,
  response_body: text,
  request_headers: list(AttemptHeader),
  response_headers: list(AttemptHeader),
})

const SigningSecret = Type.String({ description: 'whsec_ and base64, as in Standard Webhooks' })

/** The webhook operations (spec 4.3) and their extensions, the same in every variant. */
export const webhook = {
  ListWebhookHeaders: operation({
    summary: 'List the custom headers of a webhook, or those of all webhooks.',
    services: 'TSPC',
    request: { webhook_id: optional(Id) },
    response: { webhook_headers: list(WebhookHeader) },
  }),
  ListWebhookHistories: operation({
    summary: 'List notifications and how their delivery went, newest first.',
    services: 'TSPC',
    description:
      'With a transaction, those about its transfers and, on C, about its states. A notification without a hash, such as a test, is in no such list.',
    request: {
      webhook_id: optional(Id),
      transaction_hash: only('TPC', optional(extension(TransactionId))),
      transaction_digest: only('S', optional(extension(TransactionId))),
      ...timeRange,
      ...page,
    },
    response: { webhook_histories: list(WebhookHistory), pagination: Pagination },
  }),
  // The endpoint is checked here and again at each connection, because what a name resolves to may change.
  RegisterWebhook: operation({
    creates: true,
    summary: 'Notify an endpoint of wallet activity.',
    services: 'TSPC',
    request: {
      wallet_id: optional(Id),
      webhook_endpoint: Endpoint,
      confirmation: Confirmation,
      events: OptionalEvents,
    },
    response: { webhook_id: text },
  }),
  RegisterWebhookHeader: operation({
    creates: true,
    summary: 'Attach a custom header to the deliveries of a webhook, or of all.',
    services: 'TSPC',
    request: { webhook_id: optional(Id), header_key: HeaderKey, header_value: HeaderValue },
    response: { webhook_header_id: text },
  }),
  // Removing what is not there succeeds: a client may repeat it after a lost answer.
  RemoveWebhook: operation({
    summary: 'Remove a webhook; its history stays.',
    description: 'One that is not there, or no longer, is no error.',
    services: 'TSPC',
    request: { webhook_id: Id },
    response: {},
  }),
  RemoveWebhookHeader: operation({
    summary: 'Remove a custom header.',
    description: 'One that is not there, or no longer, is no error.',
    services: 'TSPC',
    request: { webhook_header_id: Id },
    response: {},
  }),
  ListWebhooks: operation({
    summary: 'List webhooks with their state, success rate and last error.',
    services: 'TSPC',
    extension: true,
    request: { wallet_id: optional(Id), webhook_id: optional(Id), ...page },
    response: { webhooks: list(Webhook), pagination: Pagination },
  }),
  GetWebhookSigningSecret: operation({
    summary: 'Read the secret with which a webhook signs its deliveries.',
    services: 'TSPC',
    extension: true,
    request: { webhook_id: Id },
    response: { signing_secret: SigningSecret },
  }),
  RotateWebhookSigningSecret: operation({
    summary: `Give a webhook a new signing secret; both sign for ${secretOverlapHours} hours.`,
    services: 'TSPC',
    extension: true,
    request: { webhook_id: Id },
    response: { signing_secret: SigningSecret },
  }),
  UpdateWebhook: operation({
    summary: 'Change the endpoint, the confirmation or the events of a webhook.',
    description:
      'What is left out stays as it is. Notifications that wait for their confirmation wait for the new one; those that wait for a retry are sent to a new endpoint at once.',
    services: 'TSPC',
    extension: true,
    request: {
      webhook_id: Id,
      webhook_endpoint: optional(Endpoint),
      confirmation: optional(Confirmation),
      events: OptionalEvents,
    },
    anyOf: ['webhook_endpoint', 'confirmation', 'events'],
    response: {},
  }),
  DisableWebhook: operation({
    summary: 'Disable a webhook; its notifications are held back until it is enabled.',
    services: 'TSPC',
    extension: true,
    request: { webhook_id: Id },
    response: {},
  }),
  EnableWebhook: operation({
    summary: 'Enable a webhook that was disabled; it resumes where it stopped.',
    description:
      'All notifications that were not delivered are sent, failed ones too, in the order of their sequence.',
    services: 'TSPC',
    extension: true,
    request: { webhook_id: Id },
    response: {},
  }),
  SendTestWebhook: operation({
    creates: true,
    summary: 'Send a test notification.',
    services: 'TSPC',
    extension: true,
    request: { webhook_id: Id },
    response: { webhook_history_id: text },
  }),
  RetryWebhookHistory: operation({
    summary: 'Deliver a notification again, or all failed ones since a time.',
    services: 'TSPC',
    extension: true,
    request: {
      webhook_history_id: optional(Id),
      webhook_id: optional(Id),
      start_time: optional(UnixTime),
    },
    anyOf: ['webhook_history_id', 'webhook_id'],
    exclusive: [['webhook_history_id', 'start_time']],
    response: { retried_count: Count },
  }),
  ListWebhookAttempts: operation({
    summary: 'List the attempts to deliver a notification.',
    description:
      'With the headers of request and answer. Values of custom headers and cookies are masked; of an answer, 16 KiB of the body and 4 KiB of the headers are kept.',
    services: 'TSPC',
    extension: true,
    request: { webhook_history_id: Id },
    response: { webhook_history: WebhookHistory, webhook_attempts: list(WebhookAttempt) },
  }),
}
