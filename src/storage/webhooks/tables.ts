import type {
  NotificationType,
  SinkType,
  WebhookEvent,
  WebhookState,
  WebhookStatus,
} from '../../contract/records/states.ts'
import {
  bytea,
  int2,
  int4,
  int8,
  jsonb,
  nullable,
  oneOf,
  someOf,
  text,
  timestamptz,
  uuid,
  uuids,
} from '../pg/columns.ts'

/** The tables of 0006-webhooks.sql. */
export const webhookTables = {
  webhook: {
    webhook_id: uuid,
    organization_id: uuid,
    network_id: int2,
    wallet_id: nullable(uuid),
    webhook_endpoint: text,
    confirmation: int8,
    next_confirmation: nullable(int8),
    events: nullable(someOf<WebhookEvent>()),
    webhook_state: oneOf<WebhookState>(),
    disable_reason: nullable(text),
    disable_time: nullable(timestamptz),
    failing_since: nullable(timestamptz),
    last_error: nullable(text),
    secret_sealed: bytea,
    previous_secret_sealed: nullable(bytea),
    previous_secret_expire_time: nullable(timestamptz),
    // Taken under the lock of this row, so that the sequence of a webhook has no gap and the order of the chain.
    next_sequence: int8,
    // Events may be expanded long after they were stored. These say which of them came after the registration, and what
    // `events` was at their time.
    first_event: nullable(int8),
    earlier_events: nullable(jsonb),
    create_time: timestamptz,
    update_time: timestamptz,
    sink: nullable(oneOf<'stream' | 'nats' | 'kafka'>()),
  },
  // Where the notifications of a sink go, and how far they have come.
  sink: {
    webhook_id: uuid,
    organization_id: uuid,
    network_id: int2,
    sink_type: oneOf<SinkType>(),
    // Servers, names and sealed credentials; what a broker needs differs by its type.
    settings: jsonb,
    position: int8,
    publish_time: nullable(timestamptz),
    // Raised with each claim: a process that was replaced cannot move the position any more.
    epoch: int8,
    claim_expire_time: nullable(timestamptz),
    failure_count: int4,
    next_attempt_time: timestamptz,
    remove_time: nullable(timestamptz),
    create_time: timestamptz,
  },
  // Values are sealed: they often contain a token of the receiver.
  webhook_header: {
    webhook_header_id: uuid,
    organization_id: uuid,
    network_id: int2,
    webhook_id: nullable(uuid),
    header_key: text,
    header_value_sealed: bytea,
    create_time: timestamptz,
  },
  // A notification. It waits without a sequence until its block is confirmed, and is not listed until then.
  // The id is a hash of webhook and event, so that storing it twice changes nothing.
  delivery: {
    webhook_history_id: uuid,
    organization_id: uuid,
    network_id: int2,
    webhook_id: uuid,
    notification_type: oneOf<NotificationType>(),
    data: jsonb,
    sequence: nullable(int8),
    transaction_hash: nullable(bytea),
    block_number: nullable(int8),
    // The block whose arrival confirms it, so that release is one comparison with the head.
    due_block: nullable(int8),
    create_time: timestamptz,
  },
  // What is not delivered yet. A claim writes this narrow row only: a third of the cost of updating the
  // notification.
  delivery_queue: {
    webhook_history_id: uuid,
    organization_id: uuid,
    webhook_id: uuid,
    sequence: int8,
    webhook_status: oneOf<WebhookStatus>(),
    next_attempt_time: nullable(timestamptz),
    claim_expire_time: nullable(timestamptz),
    // The place in the schedule of retries, kept apart from the number of attempts: a manual retry begins anew.
    retry_step: int2,
  },
  // In the order of the sequences of a webhook: attempts of one are neighbours in the index.
  delivery_attempt: {
    webhook_id: uuid,
    sequence: int8,
    attempt: int4,
    organization_id: uuid,
    attempt_time: timestamptz,
    duration_ms: int4,
    status_code: nullable(int4),
    error: nullable(text),
    response_body: nullable(bytea),
    request_headers: nullable(text),
    response_headers: nullable(text),
  },
  // A change of one transaction, stored once for an organization with many webhooks and expanded afterwards
  // (`workers/webhooks/fan-out.ts`), so that a block stays one short transaction.
  notification_event: {
    network_id: int2,
    organization_id: uuid,
    event_number: int8,
    event_kind: oneOf<'TRANSFERS' | 'REORGANIZATION'>(),
    block_number: int8,
    wallet_ids: nullable(uuids),
    event_key: nullable(someOf<string>()),
    notification_type: nullable(oneOf<NotificationType>()),
    data: nullable(jsonb),
    transaction_hash: nullable(bytea),
    after_webhook_id: nullable(uuid),
    create_time: timestamptz,
  },
  // The number of the next event of an organization on a network; its row is locked while events are numbered.
  notification_turn: {
    network_id: int2,
    organization_id: uuid,
    next_event: int8,
  },
  // A state change of a managed transaction, to be expanded to one notification per webhook later.
  state_event: {
    network_id: int2,
    organization_id: uuid,
    event_number: int8,
    transaction_id: text,
    wallet_id: uuid,
    transaction_hash: nullable(bytea),
    data: jsonb,
    after_webhook_id: nullable(uuid),
    create_time: timestamptz,
  },
}
