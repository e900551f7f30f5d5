// Refusals of webhooks, sinks and event streams. Failed deliveries are no errors of the API: they are in the history of the
// webhook.

import type { ErrorRow } from './row.ts'

/** What can go wrong with webhooks; part of the one table of errors. */
export const webhookErrors = {
  WEBHOOK_NOT_FOUND: {
    status: 404,
    code: 'NOT_FOUND',
    rpc: -32602,
    retry: 'never',
    title: 'Webhook not found',
    help: 'Use ListWebhooks. A webhook of another organization or service gives the same answer.',
  },
  WEBHOOK_HEADER_NOT_FOUND: {
    status: 404,
    code: 'NOT_FOUND',
    rpc: -32602,
    retry: 'never',
    title: 'Webhook header not found',
    help: 'Use ListWebhookHeaders, with the `webhook_id` of the header or without one for those of all webhooks.',
  },
  WEBHOOK_HISTORY_NOT_FOUND: {
    status: 404,
    code: 'NOT_FOUND',
    rpc: -32602,
    retry: 'never',
    title: 'Webhook history not found',
    help: 'Use ListWebhookHistories. A notification that still waits for its confirmation is not listed yet.',
  },
  WEBHOOK_DISABLED: {
    status: 409,
    code: 'FAILED_PRECONDITION',
    rpc: -32602,
    retry: 'never',
    title: 'The webhook is disabled',
    help: 'Call EnableWebhook first: it delivers all undelivered notifications. ListWebhooks shows why it was disabled.',
  },
  SINK_NOT_FOUND: {
    status: 404,
    code: 'NOT_FOUND',
    rpc: -32602,
    retry: 'never',
    title: 'Sink not found',
    help: 'Use ListSinks. A sink of another organization or service gives the same answer.',
  },
  TOO_MANY_SINKS: {
    status: 409,
    code: 'FAILED_PRECONDITION',
    rpc: -32602,
    retry: 'never',
    title: 'Too many sinks',
    help: 'Remove a sink of this network first: see ListSinks and RemoveSink.',
  },
} as const satisfies Record<string, ErrorRow>

/** What can go wrong with event streams and the console; part of the one table of errors. */
export const eventErrors = {
  EVENTS_EXPIRED: {
    status: 410,
    code: 'OUT_OF_RANGE',
    rpc: -32602,
    retry: 'never',
    title: 'The events after this position are no longer stored',
    help: 'Events are kept as long as webhook histories (`webhooks.history_retention_days`). Read ListTransfers for what was missed, then connect without `after`, or with `after=0` for the oldest stored event.',
  },
  INVALID_STREAM_TOKEN: {
    status: 401,
    code: 'UNAUTHENTICATED',
    rpc: -32600,
    retry: 'never',
    title: 'The stream token is not valid',
    help: 'CreateStreamToken makes one. It opens one connection, within 60 seconds, at the address of the service that made it. A token of a deleted credential or of a disabled organization gives the same answer.',
  },
  ORIGIN_NOT_ALLOWED: {
    status: 403,
    code: 'PERMISSION_DENIED',
    rpc: -32600,
    retry: 'never',
    title: 'Pages of this origin may not open a stream',
    help: 'A page may open an event stream of its own host, or where `server.cors_origins` has its origin.',
  },
  INVALID_SIGN_IN_CODE: {
    status: 401,
    code: 'UNAUTHENTICATED',
    rpc: -32600,
    retry: 'never',
    title: 'The sign-in link is not valid',
    help: 'The link that the service prints at its start works once, within 15 minutes. Start the service again for a new one, or sign in with a key of `connection.json`.',
  },
} as const satisfies Record<string, ErrorRow>
