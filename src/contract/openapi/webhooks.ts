// Notifications as OpenAPI describes them: requests that the service makes. Generators of servers can use them as the
// interface of a receiver.

import Type, { type TObject } from 'typebox'
import { Count, Timestamp, text } from '../fields.ts'
import { ManagedTransaction } from '../operations/transaction.ts'
import {
  notificationTypes,
  operationalEventNames,
  operationalNotificationType,
} from '../records/states.ts'
import { Transfer } from '../records/wallet.ts'
import { fieldIn, type OnRecord, only, propertiesIn, services } from '../variant.ts'
import { answerDocument } from './schema.ts'

type WalletService = keyof typeof notificationTypes

const headers = {
  'webhook-id': 'The webhook_history_id; the same in every attempt.',
  'webhook-timestamp': 'Unix time of the attempt in seconds.',
  'webhook-signature': 'v1 and the base64 of the HMAC-SHA256, as in Standard Webhooks.',
}

/** Services with managed transactions notify about them too. */
const ManagedTransactionField = only('C', ManagedTransaction)

/** The notifications of some services as the `webhooks` of an OpenAPI document. */
export function webhookPaths(
  wanted: readonly string[],
  componentsOf: (service: WalletService) => OnRecord,
): Record<string, unknown> {
  const found = (Object.keys(notificationTypes) as WalletService[]).filter((service) =>
    wanted.includes(service),
  )
  return Object.fromEntries([
    ...found.map((service) => [
      notificationTypes[service],
      {
        post: notification(`${service}_notification`, {
          summary: 'A transaction that concerns a wallet of the webhook.',
          body: bodyOf(service, componentsOf(service)),
        }),
      },
    ]),
    ...(found.length > 0
      ? [
          [
            operationalNotificationType,
            {
              post: notification('operational_event', {
                summary: 'An operational event, for webhooks that name WEBHOOK_EVENT_OPERATIONAL.',
                body: operationalBody,
              }),
            },
          ],
        ]
      : []),
  ])
}

const notification = (
  operationId: string,
  { summary, body }: { summary: string; body: TObject },
) => ({
  operationId,
  summary,
  description: 'Sent to the webhook_endpoint of RegisterWebhook. Anything but 2xx is tried again.',
  tags: ['Notifications'],
  // A receiver checks the signature; the scheme of the operations does not apply.
  security: [],
  parameters: Object.entries(headers).map(([name, description]) => ({
    name,
    in: 'header',
    required: true,
    description,
    schema: { type: 'string' },
  })),
  requestBody: {
    required: true,
    content: { 'application/json': { schema: answerDocument(body) } },
  },
  responses: {
    '2XX': { description: 'Taken.' },
    410: { description: 'The webhook is disabled at once.' },
    '4XX': { description: 'Tried again later.' },
    '5XX': { description: 'Tried again later.' },
  },
})

const operationalBody = Type.Object({
  webhook_id: text,
  webhook_history_id: text,
  notification_type: Type.Enum([operationalNotificationType]),
  create_time: Timestamp,
  data: Type.Object({
    sequence: Type.Integer({ minimum: 1, description: 'counts without a gap, from 1' }),
    operational_event: Type.Object({
      event_id: Type.String({
        description: 'the same at the beginning and at the end of an incident',
      }),
      event: Type.Enum(operationalEventNames),
      chain: text,
      network: text,
      organization_id: Type.Union([text, Type.Null()]),
      subject: Type.String({ description: 'a webhook, transaction, node, wallet or first block' }),
      detail: text,
      create_time: Timestamp,
      resolve_time: Type.Union([Timestamp, Type.Null()]),
    }),
  }),
})

const omittedData = Type.Object({
  data_omitted: Type.Optional(
    Type.Boolean({ description: '`data` is too long for a notification, see GetTransaction' }),
  ),
})

function bodyOf(service: WalletService, onRecord: OnRecord): TObject {
  const tag = services[service]
  const transfer = Type.Intersect([
    Type.Object({ wallet_id: text }),
    fieldIn(Transfer, tag, onRecord)!,
  ])
  const sequence = Type.Integer({ minimum: 1, description: 'counts without a gap, from 1' })
  const { transaction_hash, transaction_digest } = Transfer.fields
  const transfers = Type.Object({
    sequence,
    ...propertiesIn({ transaction_hash, transaction_digest }, tag),
    confirmations: Count,
    transfers: Type.Array(transfer),
    transfers_omitted: Type.Optional(
      Type.Boolean({ description: 'the transaction has more transfers, see ListTransfers' }),
    ),
    backfilled: Type.Optional(Type.Boolean()),
    test: Type.Optional(Type.Boolean()),
  })
  const transaction = fieldIn(ManagedTransactionField, tag, onRecord)
  return Type.Object({
    webhook_id: text,
    webhook_history_id: text,
    notification_type: Type.Enum([notificationTypes[service]]),
    create_time: Timestamp,
    data: transaction
      ? Type.Union([
          transfers,
          Type.Object({ sequence, transaction: Type.Intersect([transaction, omittedData]) }),
        ])
      : transfers,
  })
}
