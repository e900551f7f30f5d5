-- What an organization with many webhooks is to be notified of: one row per transaction, written with the
-- block. The notifications, one per webhook, are written outside of the block's transaction.
create table notification_event (
  chain_id int2 not null references chain,
  organization_id uuid not null,
  -- Counts the rows of an organization on a chain; see notification_turn.
  event_number int8 not null,
  -- The wallets that the transaction touches.
  wallet_ids uuid[] not null,
  -- What the ids of the notifications are made of, as hex.
  event_key text[] not null,
  notification_type text not null,
  data jsonb not null,
  transaction_hash bytea not null,
  block_number int8 not null,
  -- The last webhook, in the order of ids, that has its notification.
  after_webhook_id uuid,
  create_time timestamptz not null,
  primary key (chain_id, organization_id, event_number)
);

-- The number of the next event.
create table notification_turn (
  chain_id int2 not null references chain,
  organization_id uuid not null,
  next_event int8 not null,
  primary key (chain_id, organization_id)
);

alter table webhook
  -- The first event that the webhook is notified of: those before it were stored before it was
  -- registered. Null for all.
  add column first_event int8,
  -- What it notified of before its events were changed, for events that are not expanded yet: a list of
  -- { until, events }.
  add column earlier_events jsonb;

-- Webhooks of a wallet or of all, in the order of their ids.
drop index webhook_match;
create index webhook_match on webhook (chain_id, organization_id, wallet_id, webhook_id);

-- What the new head makes due, organization by organization, so that one with many waits behind no other.
drop index delivery_waiting;
create index delivery_waiting on delivery (chain_id, organization_id, due_block, block_number)
  where due_block is not null;
