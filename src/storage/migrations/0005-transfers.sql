-- Transfers of tracked addresses.

-- One row per transfer, tracked address and side. The key begins with wallet and time: it serves the first
-- page, later pages, time ranges and idempotent inserts, and allows one partition per month. There is no
-- default partition, because with one a page would have to merge all months.
create table transfer (
  wallet_id uuid not null,
  block_time timestamptz not null,
  block_number int8 not null,
  -- The place in the block. It does not depend on what is tracked, so that processing a block again changes nothing.
  ordinal int8 not null,
  -- 0 out, 1 in.
  side int2 not null check (side in (0, 1)),
  organization_id uuid not null,
  network_id int2 not null,
  address bytea not null,
  transaction_hash bytea not null,
  asset_id uuid not null,
  "from" bytea not null,
  "to" bytea not null,
  value numeric(78) not null,
  transaction_fee numeric(78) not null,
  -- Pending transfers are stored as successful ones; whether they are confirmed follows from the head.
  transfer_state text not null
    check (transfer_state in ('TRANSFER_STATE_SUCCESS', 'TRANSFER_STATE_FAILED')),
  -- T: the message, which identifies the transfer when it bounces, and the external message that wallet
  -- applications show.
  transfer_hash bytea,
  external_hash bytea,
  -- Fields that only one variant has.
  detail jsonb,
  primary key (wallet_id, block_time, block_number, ordinal, side)
) partition by range (block_time);
-- ListTransfers of one address.
create index transfer_address on transfer (wallet_id, address, block_time, block_number, ordinal, side);
-- ListTransfers by transaction: one cheap probe per month.
create index transfer_transaction on transfer (transaction_hash);
-- A bounce in T finds the transfer of its message.
create index transfer_message on transfer (transfer_hash) where transfer_hash is not null;
-- ListTransfers in T by external message.
create index transfer_external on transfer (external_hash) where external_hash is not null;
-- A reorganization deletes by block.
create index transfer_block on transfer (network_id, block_number);
