-- How many transactions of an organization may be open, without counting them for each new one. Every new one first adds 1 to
-- `reserved`, which is thereby at least the number of open ones; nothing is subtracted when one ends, so that blocks do not wait
-- for a counter. An exact count replaces it when it reaches the quota.
create table open_transaction_use (
  organization_id uuid not null primary key,
  reserved int8 not null,
  -- Incremented by each exact count. A reservation of an earlier one is void: the count did not see its transaction.
  generation int8 not null,
  count_time timestamptz not null
) with (fillfactor = 50);

-- What the last scan of the open transactions of an address found, carried on by each creation and cancellation, so that not every
-- one of up to 1,000 transactions reads all others. A row may be missing or old; then the transactions are read again.
create table sender_nonce (
  organization_id uuid not null,
  network_id int2 not null,
  "from" bytea not null,
  -- From the first up to the second, which is not included, each nonce is held or used on the chain.
  base_nonce int8 not null,
  next_nonce int8 not null,
  -- At least as many are open, and at least as much those not mined may spend.
  open_count int8 not null,
  open_cost numeric not null,
  count_time timestamptz not null,
  scan_time timestamptz not null,
  primary key (organization_id, network_id, "from")
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);
