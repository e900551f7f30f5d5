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
