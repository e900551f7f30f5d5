-- Whom to tell, and what was told.

create table webhook (
  webhook_id uuid primary key,
  organization_id uuid not null references organization,
  chain_id int2 not null references chain,
  -- Null covers all wallets.
  wallet_id uuid references wallet,
  webhook_endpoint text not null,
  confirmation int8 not null check (confirmation between 0 and 1000000),
  webhook_state text not null check (webhook_state in ('WEBHOOK_STATE_ENABLED', 'WEBHOOK_STATE_DISABLED')),
  disable_reason text,
  disable_time timestamptz,
  failing_since timestamptz,
  last_error text,
  secret_sealed bytea not null,
  -- Signs too until it expires, so that a rotation loses no delivery.
  previous_secret_sealed bytea,
  previous_secret_expire_time timestamptz,
  next_sequence int8 not null,
  create_time timestamptz not null,
  update_time timestamptz not null
) with (fillfactor = 50);
-- Which webhooks want a wallet's event; also ListWebhooks.
create index webhook_match on webhook (chain_id, organization_id, wallet_id);

create table webhook_header (
  webhook_header_id uuid primary key,
  organization_id uuid not null references organization,
  chain_id int2 not null references chain,
  -- Null applies to all webhooks.
  webhook_id uuid references webhook on delete cascade,
  header_key text not null check (length(header_key) between 1 and 1000),
  -- Sealed: custom headers often carry a token of the receiver.
  header_value_sealed bytea not null,
  create_time timestamptz not null
);
-- The headers of a webhook, or those of all webhooks.
create index webhook_header_match on webhook_header (organization_id, chain_id, webhook_id);
-- Deleting a webhook finds its headers.
create index webhook_header_webhook on webhook_header (webhook_id);

-- Outbox, queue and history in one. A row is written with its transfer and waits (due_block set,
-- sequence null, not listed). At its confirmation it gets sequence, create_time and
-- next_attempt_time; a reorganization before that deletes it. A claim moves next_attempt_time
-- ahead, so that the claims of a dead courier come back by themselves. The id is a hash of webhook
-- and event: writing it twice changes nothing, and it is the receiver's key against duplicates.
create table delivery (
  webhook_history_id uuid primary key,
  organization_id uuid not null,
  chain_id int2 not null,
  webhook_id uuid not null,
  notification_type text not null,
  webhook_status text not null check (webhook_status in ('WEBHOOK_STATUS_PENDING',
    'WEBHOOK_STATUS_IN_PROGRESS', 'WEBHOOK_STATUS_COMPLETED', 'WEBHOOK_STATUS_FAILED', 'WEBHOOK_STATUS_ON_HOLD')),
  delivery_count int4 not null,
  delivery_time timestamptz,
  data jsonb not null,
  sequence int8,
  transaction_hash bytea,
  block_number int8,
  due_block int8,
  next_attempt_time timestamptz,
  last_error text,
  create_time timestamptz not null,
  update_time timestamptz not null
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02);
-- What the new head makes due.
create index delivery_waiting on delivery (chain_id, due_block) where due_block is not null;
-- A reorganization cancels or follows up what its blocks had caused.
create index delivery_block on delivery (chain_id, block_number) where block_number is not null;
-- Claims take the oldest due rows; finished rows are not in the index.
create index delivery_due on delivery (next_attempt_time) where next_attempt_time is not null;
-- Claims for one endpoint, past another that is stuck with a long queue.
create index delivery_webhook_due on delivery (webhook_id, next_attempt_time) where next_attempt_time is not null;
-- Keeps the sequence of a webhook free of doubles, and sends in its order.
create unique index delivery_sequence on delivery (webhook_id, sequence) where sequence is not null;
-- EnableWebhook and RetryWebhookHistory pick up what stopped.
create index delivery_stopped on delivery (webhook_id, webhook_status, create_time)
  where webhook_status in ('WEBHOOK_STATUS_FAILED', 'WEBHOOK_STATUS_ON_HOLD');
-- ListWebhookHistories of an organization, and its retention.
create index delivery_list on delivery (organization_id, chain_id, create_time, webhook_history_id);
-- ListWebhookHistories of one webhook.
create index delivery_webhook_list on delivery (webhook_id, create_time, webhook_history_id);

create table delivery_attempt (
  webhook_history_id uuid not null,
  attempt int4 not null,
  organization_id uuid not null,
  attempt_time timestamptz not null,
  duration_ms int4 not null,
  status_code int4,
  error text,
  response_body bytea,
  primary key (webhook_history_id, attempt)
);
