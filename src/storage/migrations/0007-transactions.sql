-- Transactions that users send through the service, and pending transactions of nodes.

create table managed_transaction (
  organization_id uuid not null references organization,
  transaction_id text not null,
  network_id int2 not null references network,
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
  -- The chain id that is signed. It does not change after creation.
  eip155_chain_id numeric(78) not null,
  -- Hash of the request before defaults: distinguishes a repeated request from a conflicting one.
  request_hash bytea not null,
  -- Sentences about what looked wrong at creation.
  warnings jsonb,
  signature bytea,
  raw_transaction bytea,
  transaction_hash bytea,
  -- Incremented before every broadcast, so that only the result of the newest one is stored.
  broadcast_count int4 not null,
  -- A broadcast may have reached a node. From then on, a refusal does not prove that no node has the transaction.
  is_unsure boolean not null,
  -- When the sender checks the transaction again; null while it waits for the chain or the user.
  next_broadcast_time timestamptz,
  last_error text,
  sent_time timestamptz,
  broadcast_time timestamptz,
  block_number int8,
  block_hash bytea,
  -- 1 succeeded, 0 reverted; null while there is no receipt.
  receipt_status int2 check (receipt_status in (0, 1)),
  -- The transaction that used the nonce instead, and its block.
  replaced_by bytea,
  replaced_block_number int8,
  create_time timestamptz not null,
  update_time timestamptz not null,
  primary key (organization_id, transaction_id)
) with (fillfactor = 80);
-- ListTransactions of a wallet, of all states or one.
create index managed_transaction_wallet on managed_transaction (wallet_id, create_time, transaction_id);
create index managed_transaction_wallet_state
  on managed_transaction (wallet_id, transaction_state, create_time, transaction_id);
-- ListTransactions of an address, of all states or one.
create index managed_transaction_address
  on managed_transaction (organization_id, network_id, "from", create_time, transaction_id);
create index managed_transaction_address_state on managed_transaction
  (organization_id, network_id, "from", transaction_state, create_time, transaction_id);
-- GetTransaction by hash, and the tracker's look-up of the transactions of a block.
create index managed_transaction_hash on managed_transaction (network_id, transaction_hash)
  where transaction_hash is not null;
-- The next free nonce of an address, and which open transactions use a nonce.
create index managed_transaction_nonce on managed_transaction (network_id, "from", nonce)
  where transaction_state in ('TRANSACTION_STATE_CREATED', 'TRANSACTION_STATE_SIGNED',
    'TRANSACTION_STATE_SENDING', 'TRANSACTION_STATE_SENT', 'TRANSACTION_STATE_MINED');
-- The nonces of an address including completed ones: a node's count may lag behind them.
create index managed_transaction_sender on managed_transaction (network_id, "from", nonce);
-- What the sender has to complete.
create index managed_transaction_open on managed_transaction (network_id, transaction_state, update_time)
  where transaction_state in ('TRANSACTION_STATE_SENDING', 'TRANSACTION_STATE_SENT', 'TRANSACTION_STATE_MINED');
create index managed_transaction_due on managed_transaction (network_id, next_broadcast_time)
  where next_broadcast_time is not null;
-- Unsigned transactions, which the sender expires.
create index managed_transaction_unsigned on managed_transaction (network_id, create_time)
  where transaction_state = 'TRANSACTION_STATE_CREATED';
-- What a reorganization reverts.
create index managed_transaction_block on managed_transaction (network_id, block_number)
  where block_number is not null;
create index managed_transaction_replaced on managed_transaction (network_id, replaced_block_number)
  where replaced_block_number is not null;
-- The number of open transactions of an organization.
create index managed_transaction_quota on managed_transaction (organization_id)
  where transaction_state in ('TRANSACTION_STATE_CREATED', 'TRANSACTION_STATE_SIGNED',
    'TRANSACTION_STATE_SENDING', 'TRANSACTION_STATE_SENT', 'TRANSACTION_STATE_MINED');

-- Pending transactions that nodes reported.
create table pending_transaction (
  network_id int2 not null references network,
  transaction_hash bytea not null,
  "from" bytea not null,
  nonce int8 not null,
  -- The object that the node returned.
  detail jsonb not null,
  record_time timestamptz not null,
  -- When the nodes were last asked whether they still have it; null is due at once.
  check_time timestamptz,
  -- When it left the pool; null while it is pending.
  leave_time timestamptz,
  primary key (network_id, transaction_hash)
) with (autovacuum_vacuum_scale_factor = 0.02);
-- ListPendingTransactions; also finds the transaction that a new one replaces.
create index pending_transaction_sender on pending_transaction (network_id, "from", nonce)
  where leave_time is null;
-- The number of rows is bounded: the oldest are deleted first.
create index pending_transaction_age on pending_transaction (network_id, record_time);
-- The next to be checked.
create index pending_transaction_check on pending_transaction (network_id, check_time nulls first)
  where leave_time is null;
-- Deleted a day after they left the pool.
create index pending_transaction_left on pending_transaction (leave_time) where leave_time is not null;
