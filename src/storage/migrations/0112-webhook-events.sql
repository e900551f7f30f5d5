-- What a webhook notifies of; null means everything.
alter table webhook add column events text[] check (
  cardinality(events) > 0
  and events <@ array['WEBHOOK_EVENT_TRANSFER', 'WEBHOOK_EVENT_TRANSACTION_STATE']);

-- A removed wallet is not listed and has no addresses; its transfers and transactions stay readable.
alter table wallet add column remove_time timestamptz;
