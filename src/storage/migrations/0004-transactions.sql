-- Transactions that users send, and those seen on their way.

create table managed_transaction (
  organization_id uuid not null references organization,
  transaction_id text not null,
  chain_id int2 not null references chain,
  wallet_id uuid not null references wallet,
  transaction_state text not null check (transaction_state in ('TRANSACTION_STATE_CREATED',
    'TRANSACTION_STATE_SIGNED', 'TRANSACTION_STATE_SENDING', 'TRANSACTION_STATE_SENT',
    'TRANSACTION_STATE_MINED', 'TRANSACTION_STATE_CONFIRMED', 'TRANSACTION_STATE_REVERTED',
    'TRANSACTION_STATE_REPLACED', 'TRANSACTION_STATE_CANCELED')),
  "from" bytea not null,
  "to" bytea not null,
  value numeric(78) not null,
  gas numeric(78) not null,
  gas_price numeric(78) not null,
  data bytea not null,
  nonce int8 not null,
  -- The chain id that is signed, frozen with the rest.
  eip155_chain_id numeric(78) not null,
  -- Hash of what the user asked for, before defaults: tells a repeated request from a conflicting one.
  request_hash bytea not null,
  signature bytea,
  raw_transaction bytea,
  transaction_hash bytea,
  last_error text,
  replaced_by bytea,
  sent_time timestamptz,
  broadcast_time timestamptz,
  block_number int8,
  block_hash bytea,
  receipt_status int2,
  create_time timestamptz not null,
  update_time timestamptz not null,
  primary key (organization_id, transaction_id)
) with (fillfactor = 80);
-- ListTransactions of a wallet.
create index managed_transaction_wallet on managed_transaction (wallet_id, create_time, transaction_id);
-- ListTransactions of an address.
create index managed_transaction_address
  on managed_transaction (organization_id, chain_id, "from", create_time, transaction_id);
-- GetTransaction by hash, and the tracker's look-up of a block's transactions.
create index managed_transaction_hash on managed_transaction (chain_id, transaction_hash)
  where transaction_hash is not null;
-- The next free nonce of an address, and who else holds a nonce.
create index managed_transaction_nonce on managed_transaction (chain_id, "from", nonce)
  where transaction_state in ('TRANSACTION_STATE_CREATED', 'TRANSACTION_STATE_SIGNED',
    'TRANSACTION_STATE_SENDING', 'TRANSACTION_STATE_SENT', 'TRANSACTION_STATE_MINED');
-- What the sender still has to bring to an end.
create index managed_transaction_open on managed_transaction (chain_id, transaction_state, update_time)
  where transaction_state in ('TRANSACTION_STATE_SENDING', 'TRANSACTION_STATE_SENT', 'TRANSACTION_STATE_MINED');

create table pending_transaction (
  chain_id int2 not null references chain,
  transaction_hash bytea not null,
  "from" bytea not null,
  nonce numeric(20) not null,
  -- The node's own object.
  detail jsonb not null,
  record_time timestamptz not null,
  leave_time timestamptz,
  primary key (chain_id, transaction_hash)
) with (autovacuum_vacuum_scale_factor = 0.02);
-- ListPendingTransactions; a replacement shows by its nonce.
create index pending_transaction_sender on pending_transaction (chain_id, "from", nonce);
-- The recorder is bounded: the oldest go first.
create index pending_transaction_age on pending_transaction (chain_id, record_time);
-- Forgotten a day after they left the pool.
create index pending_transaction_left on pending_transaction (leave_time) where leave_time is not null;
