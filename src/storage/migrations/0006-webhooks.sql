-- Webhooks and their notifications.

create table webhook (
  webhook_id uuid primary key,
  organization_id uuid not null references organization,
  network_id int2 not null references network,
  -- Null covers all wallets.
  wallet_id uuid references wallet,
  webhook_endpoint text not null,
  confirmation int8 not null check (confirmation between 0 and 1000000),
  -- What the webhook notifies of; null is everything.
  events text[] check (
    cardinality(events) > 0
    and events <@ array['WEBHOOK_EVENT_TRANSFER', 'WEBHOOK_EVENT_TRANSACTION_STATE']),
  -- Earlier values of `events`, for notification events that are not expanded yet: a list of { until, events }.
  earlier_events jsonb,
  -- The first notification_event that was stored after the webhook was registered; null is all.
  first_event int8,
  webhook_state text not null check (webhook_state in ('WEBHOOK_STATE_ENABLED', 'WEBHOOK_STATE_DISABLED')),
  disable_reason text,
  disable_time timestamptz,
  failing_since timestamptz,
  last_error text,
  secret_sealed bytea not null,
  -- Also signs until it expires, so that a rotation loses no delivery.
  previous_secret_sealed bytea,
  previous_secret_expire_time timestamptz,
  -- The sequence of the next notification.
  next_sequence int8 not null,
  create_time timestamptz not null,
  update_time timestamptz not null
) with (fillfactor = 50);
-- Webhooks of a wallet or of all wallets, in the order of their ids; also ListWebhooks.
create index webhook_match on webhook (network_id, organization_id, wallet_id, webhook_id);

-- Headers that are added to the requests of one webhook or of all.
create table webhook_header (
  webhook_header_id uuid primary key,
  organization_id uuid not null references organization,
  network_id int2 not null references network,
  -- Null applies to all webhooks.
  webhook_id uuid references webhook on delete cascade,
  header_key text not null check (length(header_key) between 1 and 1000),
  -- Sealed, because headers often contain a token of the receiver.
  header_value_sealed bytea not null,
  create_time timestamptz not null
);
-- The headers of a webhook, or of all webhooks.
create index webhook_header_match on webhook_header (organization_id, network_id, webhook_id);
-- Deleting a webhook deletes its headers.
create index webhook_header_webhook on webhook_header (webhook_id);
-- A header has one value per webhook, and one for all.
create unique index webhook_header_key
  on webhook_header (organization_id, network_id, webhook_id, lower(header_key)) nulls not distinct;

-- Events of organizations with many webhooks: one row per transaction, written with the block. The
-- notifications, one per webhook, are written later, outside of the transaction of the block.
create table notification_event (
  network_id int2 not null references network,
  organization_id uuid not null,
  -- Numbers the events of an organization on a network; see notification_turn.
  event_number int8 not null,
  -- The wallets that the transaction touches.
  wallet_ids uuid[] not null,
  -- The parts that the ids of the notifications are hashed from, as hex.
  event_key text[] not null,
  notification_type text not null check (notification_type in ('NOTIFICATION_TYPE_T_TRANSACTION_UPDATED',
    'NOTIFICATION_TYPE_S_TRANSACTION_UPDATED', 'NOTIFICATION_TYPE_P_TRANSACTION_UPDATED',
    'NOTIFICATION_TYPE_EVM_TRANSACTION_UPDATED')),
  data jsonb not null,
  transaction_hash bytea not null,
  block_number int8 not null,
  -- The last webhook, in the order of ids, whose notification is written.
  after_webhook_id uuid,
  create_time timestamptz not null,
  primary key (network_id, organization_id, event_number)
);

-- The number of the next notification_event.
create table notification_turn (
  network_id int2 not null references network,
  organization_id uuid not null,
  next_event int8 not null,
  primary key (network_id, organization_id)
);

-- State changes of managed transactions, where writing a notification for each webhook would delay a block:
-- one row per change, written with it. The notifications are written later, in the order of the numbers.
create table state_event (
  network_id int2 not null references network,
  organization_id uuid not null,
  -- Grows with the changes of one transaction. Two transactions can have the same number.
  event_number int8 not null,
  transaction_id text not null,
  wallet_id uuid not null,
  transaction_hash bytea,
  -- The body of the notifications, without their sequence.
  data jsonb not null,
  -- The last webhook, in the order of ids, whose notification is written.
  after_webhook_id uuid,
  create_time timestamptz not null,
  primary key (network_id, organization_id, event_number, transaction_id)
);

-- Notifications. A row is written with its transfer and waits: due_block is set, sequence is null, and it is
-- not listed. At its confirmation it gets a sequence, a create_time and a row in delivery_queue; a
-- reorganization before that deletes it. The id is a hash of webhook and event: writing it twice changes
-- nothing, and receivers use it to detect duplicates. The body is written once and never updated.
--
-- Not partitioned: PostgreSQL requires the partition key in every unique index, and neither the id nor
-- (webhook_id, sequence) contains a time. With create_time in both keys, a block that is processed again would
-- notify twice. Partitions by webhook_id would not help retention, which deletes by age and in batches.
create table delivery (
  webhook_history_id uuid primary key,
  organization_id uuid not null,
  network_id int2 not null,
  webhook_id uuid not null,
  notification_type text not null check (notification_type in ('NOTIFICATION_TYPE_T_TRANSACTION_UPDATED',
    'NOTIFICATION_TYPE_S_TRANSACTION_UPDATED', 'NOTIFICATION_TYPE_P_TRANSACTION_UPDATED',
    'NOTIFICATION_TYPE_EVM_TRANSACTION_UPDATED')),
  data jsonb not null,
  sequence int8,
  transaction_hash bytea,
  -- Null for notifications without a block, and after a reorganization removed the block: the next
  -- notification of the same block and transaction then gets another id.
  block_number int8,
  due_block int8,
  create_time timestamptz not null
) with (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.02);
-- What a new head makes due, organization by organization, so that a large one does not delay the others.
create index delivery_waiting on delivery (network_id, organization_id, due_block, block_number)
  where due_block is not null;
-- A reorganization deletes the waiting notifications of removed blocks and follows up on the others.
create index delivery_block on delivery (network_id, block_number) where block_number is not null;
-- The sequence of a webhook has no duplicates.
create unique index delivery_sequence on delivery (webhook_id, sequence) where sequence is not null;
-- ListWebhookHistories of an organization, and retention. Waiting rows are left out: at a high confirmation
-- they are many.
create index delivery_list on delivery (organization_id, network_id, create_time, webhook_history_id)
  where sequence is not null;
-- ListWebhookHistories of one webhook.
create index delivery_webhook_list on delivery (webhook_id, create_time, webhook_history_id)
  where sequence is not null;

-- Notifications that are not delivered yet. A claim and a result write only this narrow row, which is a third
-- of the cost of updating the notification itself.
create table delivery_queue (
  webhook_history_id uuid primary key,
  organization_id uuid not null,
  webhook_id uuid not null,
  sequence int8 not null,
  -- A delivered notification has no row.
  webhook_status text not null check (webhook_status in ('WEBHOOK_STATUS_PENDING',
    'WEBHOOK_STATUS_IN_PROGRESS', 'WEBHOOK_STATUS_FAILED', 'WEBHOOK_STATUS_ON_HOLD')),
  -- Null while the notification is on hold, and when no attempt is left.
  next_attempt_time timestamptz,
  -- Until then one courier has claimed it. In no index, so that a claim writes only the row.
  claim_expire_time timestamptz,
  -- Failed attempts of the current round. Enabling the webhook or requesting a retry begins a new round.
  retry_step int2 not null
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);
-- Claims go webhook by webhook: a long queue of one costs the others one look-up.
create index delivery_queue_due on delivery_queue (webhook_id, next_attempt_time, sequence)
  where next_attempt_time is not null;
-- EnableWebhook and RetryWebhookHistory continue what stopped.
create index delivery_queue_stopped on delivery_queue (webhook_id, sequence)
  where next_attempt_time is null;

-- Attempts, in the order of the sequences of their webhook: an attempt is written next to the one before it,
-- and a page of the history reads neighbours. By notification id, which is a hash, each attempt was on another
-- page of a growing index, and each such page was logged in full after every checkpoint.
--
-- Not partitioned: attempts are deleted with their notification, which is kept while it is on hold, so that a
-- partition by time could not be dropped as a whole; and a page of the history would probe every partition.
create table delivery_attempt (
  webhook_id uuid not null,
  sequence int8 not null,
  attempt int4 not null,
  organization_id uuid not null,
  attempt_time timestamptz not null,
  duration_ms int4 not null,
  -- Null if there was no response; `error` then says why.
  status_code int4,
  error text,
  response_body bytea,
  primary key (webhook_id, sequence, attempt)
);
