-- What is tracked, what it holds and what moved.

create table wallet (
  wallet_id uuid primary key,
  organization_id uuid not null references organization,
  chain_id int2 not null references chain,
  name text not null check (length(name) between 1 and 50),
  confirmation int8 not null check (confirmation between 0 and 1000000),
  create_time timestamptz not null,
  update_time timestamptz not null
);
-- ListWallets pages in order of creation, which is the order of the ids.
create index wallet_list on wallet (organization_id, chain_id, wallet_id);

-- The key begins with what a block knows, so that one look-up per block finds the tracked addresses,
-- and it states that an address belongs to one wallet of an organization. Creating a managed
-- transaction locks its row here, which makes nonces of one address wait for each other.
create table wallet_address (
  chain_id int2 not null references chain,
  address bytea not null,
  organization_id uuid not null,
  wallet_id uuid not null references wallet,
  create_time timestamptz not null,
  primary key (chain_id, address, organization_id)
);
-- The addresses of a wallet, and removing them all.
create index wallet_address_wallet on wallet_address (wallet_id, address);

-- The id is a hash of chain, type, contract and token id: the tracker knows it without asking.
create table asset (
  asset_id uuid primary key,
  chain_id int2 not null references chain,
  asset_type text not null,
  -- The contract (C), jetton master (T) or UTF-8 coin type (S); empty is the native coin.
  contract_address bytea not null,
  token_id numeric(78) not null,
  name text,
  symbol text,
  decimals int2,
  token_uri text,
  token_data text,
  metadata_time timestamptz,
  create_time timestamptz not null
);
-- The assets of one contract, for its metadata.
create index asset_contract on asset (chain_id, contract_address, token_id);

-- Which token (jetton, coin type) is tracked for which address in T and S.
create table token_import (
  chain_id int2 not null references chain,
  address bytea not null,
  asset_id uuid not null references asset,
  organization_id uuid not null,
  wallet_id uuid not null references wallet,
  token_address bytea not null,
  -- The jetton wallet in T, a tracked account of its own; empty in S.
  token_account_address bytea not null,
  create_time timestamptz not null,
  primary key (chain_id, address, asset_id, organization_id)
);
-- The tracker's look-up of jetton wallets per block.
create index token_import_account on token_import (chain_id, token_account_address)
  where token_account_address <> '';
-- Removing an address or a wallet's addresses.
create index token_import_wallet on token_import (wallet_id, address);

-- No index holds the amount, so that updates stay inside their page.
create table balance (
  wallet_id uuid not null references wallet,
  address bytea not null,
  asset_id uuid not null references asset,
  organization_id uuid not null,
  asset_type text not null,
  contract_address bytea not null,
  balance numeric(78) not null,
  as_of_block int8 not null,
  create_time timestamptz not null,
  update_time timestamptz not null,
  primary key (wallet_id, address, asset_id)
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02);
-- ListAssets of a wallet pages in order of creation.
create index balance_list on balance (wallet_id, asset_type, create_time, asset_id, address);
-- ListAssets by contract, and sums per asset, read one asset's addresses side by side.
create index balance_asset on balance (wallet_id, asset_type, contract_address, asset_id, address);

-- Balance work that waits for its block to be confirmed: without delta the balance is to be read
-- from the chain at block_number, with delta (S has no reads of the past) it is to be added.
create table balance_change (
  wallet_id uuid not null,
  address bytea not null,
  asset_id uuid not null,
  block_number int8 not null,
  organization_id uuid not null,
  chain_id int2 not null,
  due_block int8 not null,
  delta numeric(78),
  -- By wallet first: UpdateConfirmation moves its due blocks, RemoveAddress drops its work.
  primary key (wallet_id, address, asset_id, block_number)
) with (autovacuum_vacuum_scale_factor = 0.02);
-- What the new head makes due.
create index balance_change_due on balance_change (chain_id, due_block);
-- A reorganization drops the work of blocks that left the chain.
create index balance_change_block on balance_change (chain_id, block_number);

-- The window of recent blocks against which a new block's parent is checked.
create table block (
  chain_id int2 not null references chain,
  block_number int8 not null,
  block_hash bytea not null,
  parent_hash bytea not null,
  block_time timestamptz not null,
  primary key (chain_id, block_number)
);

create table tracker_cursor (
  chain_id int2 not null references chain,
  name text not null,
  block_number int8 not null,
  block_hash bytea not null,
  -- What a chain needs besides, such as the shard tops of T.
  detail jsonb,
  update_time timestamptz not null,
  primary key (chain_id, name)
) with (fillfactor = 10);

-- Blocks that no upstream could serve: shown, never skipped silently.
create table tracker_gap (
  chain_id int2 not null references chain,
  from_block int8 not null,
  to_block int8 not null,
  reason text not null,
  create_time timestamptz not null,
  close_time timestamptz,
  primary key (chain_id, from_block)
);

-- One row per movement, tracked address and side (0 out, 1 in). Led by wallet and time, one key
-- serves first page, deep page, time range and idempotent insert, and allows months as partitions.
-- There is no default partition: beside one, a page would have to merge all months.
create table transfer (
  wallet_id uuid not null,
  block_time timestamptz not null,
  block_number int8 not null,
  -- Its place in the block, given by the chain whatever is tracked: doing a block again changes nothing.
  ordinal int8 not null,
  side int2 not null,
  organization_id uuid not null,
  chain_id int2 not null,
  address bytea not null,
  transaction_hash bytea not null,
  asset_id uuid not null,
  "from" bytea not null,
  "to" bytea not null,
  value numeric(78) not null,
  transaction_fee numeric(78) not null,
  transfer_state text not null,
  -- T: the message, which finds the record again when it bounces, and the external message that users know.
  transfer_hash bytea,
  external_hash bytea,
  -- The fields that only one variant has.
  detail jsonb,
  primary key (wallet_id, block_time, block_number, ordinal, side)
) partition by range (block_time);
-- ListTransfers of one address of a wallet.
create index transfer_address on transfer (wallet_id, address, block_time, block_number, ordinal, side);
-- ListTransfers by transaction: probes every month, each probe is cheap.
create index transfer_transaction on transfer (transaction_hash);
-- A bounce in T marks the record of its message.
create index transfer_message on transfer (transfer_hash) where transfer_hash is not null;
-- ListTransfers in T by the hash that a wallet application shows.
create index transfer_external on transfer (external_hash) where external_hash is not null;
-- A reorganization deletes by block.
create index transfer_block on transfer (chain_id, block_number);

create table contract (
  organization_id uuid not null references organization,
  chain_id int2 not null references chain,
  contract_address bytea not null,
  contract_type text not null
    check (contract_type in ('CONTRACT_TYPE_ERC20', 'CONTRACT_TYPE_ERC721', 'CONTRACT_TYPE_ERC1155')),
  contract_metadata jsonb,
  create_time timestamptz not null,
  primary key (organization_id, chain_id, contract_address)
);
-- The tracker's look-up: which organizations watch the contracts of this block.
create index contract_watch on contract (chain_id, contract_address);
