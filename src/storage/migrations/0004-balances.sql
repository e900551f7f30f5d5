-- Balances and the work that keeps them current.

-- No index contains the amount, so that updates stay in their page. No foreign keys: every row comes from a
-- tracked address and a known asset, and checking them again was a third of the cost of an insert.
create table balance (
  wallet_id uuid not null,
  address bytea not null,
  asset_id uuid not null,
  organization_id uuid not null,
  asset_type text not null check (asset_type in ('ASSET_TYPE_T', 'ASSET_TYPE_S', 'ASSET_TYPE_P', 'ASSET_TYPE_C',
    'ASSET_TYPE_ERC20', 'ASSET_TYPE_ERC721', 'ASSET_TYPE_ERC1155')),
  contract_address bytea not null,
  balance numeric(78) not null,
  as_of_block int8 not null,
  -- The block at which the contract failed to return the balance; the balance is then the last one that could
  -- be read. Null while it can be read.
  unreadable_block int8,
  create_time timestamptz not null,
  -- The place in the batch that created the balance. The lists are in the order of (create_time, position), so
  -- that a new balance is added at the right end of the indexes below. With asset and address instead, and a
  -- primary key that began with the wallet, index inserts were a fifth of the database's work.
  position int4 not null,
  update_time timestamptz not null,
  -- Begins with the column that differs most, so that comparisons end early.
  primary key (address, wallet_id, asset_id)
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02);
-- ListAssets of a wallet pages in order of creation.
create index balance_list on balance (wallet_id, asset_type, create_time, position);
-- ListAssets by contract, in the same order.
create index balance_contract on balance (wallet_id, contract_address, create_time, position);

-- Balances that must be updated when their block is confirmed: without delta by reading the balance at
-- block_number, with delta (S cannot read past states) by adding it.
create table balance_change (
  wallet_id uuid not null,
  address bytea not null,
  asset_id uuid not null,
  block_number int8 not null,
  organization_id uuid not null,
  network_id int2 not null,
  due_block int8 not null,
  delta numeric(78),
  -- True if the balance is read at the newest block and stored in balance_pending until that block is
  -- confirmed: full nodes keep the states of 128 blocks, and a wallet may require more confirmations.
  ahead boolean,
  -- Begins with the wallet: UpdateConfirmation changes its due blocks, RemoveAddress deletes its rows.
  primary key (wallet_id, address, asset_id, block_number)
) with (autovacuum_vacuum_scale_factor = 0.02);
-- What a new head makes due.
create index balance_change_due on balance_change (network_id, due_block);
-- A reorganization deletes the rows of removed blocks.
create index balance_change_block on balance_change (network_id, block_number);

-- Balance changes of a batch of blocks in one row. Far behind the head, one balance_change row per balance was
-- a third of the database's work. Code that removes or moves changes first expands these rows into
-- balance_change, so everything that a row here names is still tracked.
create table balance_backlog (
  network_id int2 not null references network,
  backlog_id uuid not null,
  -- The block that makes the last change due.
  due_block int8 not null,
  pair_count int4 not null,
  -- { owners: [{ wallet_id, organization_id, asset_id, confirmation, asset_type, contract_address, token_id,
  -- length, addresses, blocks }] }: `addresses` is the hex of all addresses of one length, `blocks` the hex of
  -- their blocks, twelve digits each. With a JSON string and number for each, the server spent as much time on
  -- parsing a document as on storing it. Not arrays, as in balance_reading, because the service reads every row
  -- back: for 5,000 balances of 50 wallets, arrays took 10 instead of 15 ms to write, but 31 instead of 11 ms to
  -- read, since the driver receives arrays as text.
  work jsonb not null,
  primary key (network_id, backlog_id)
) with (autovacuum_vacuum_scale_factor = 0.02);
-- Written once and read once: compression would cost more than it saves.
alter table balance_backlog alter column work set storage external;

-- Which balances were read at which blocks, kept while these blocks can be reorganized: the balances are then
-- read again. One row per batch, because one row per balance was a fifth of the database's work while catching up.
create table balance_reading (
  network_id int2 not null references network,
  block_number int8 not null,
  reading_id uuid not null,
  -- The balances, one element of each array per balance. The arrays are read by the server only.
  wallet_ids uuid[] not null,
  addresses bytea[] not null,
  asset_ids uuid[] not null,
  primary key (network_id, block_number, reading_id)
);
-- Written once and rarely read: compression would cost more than it saves.
alter table balance_reading
  alter column wallet_ids set storage external,
  alter column addresses set storage external,
  alter column asset_ids set storage external;

-- Balances that were read at a block that is not confirmed for the wallet yet.
create table balance_pending (
  wallet_id uuid not null,
  address bytea not null,
  asset_id uuid not null,
  block_number int8 not null,
  organization_id uuid not null,
  network_id int2 not null references network,
  asset_type text not null check (asset_type in ('ASSET_TYPE_T', 'ASSET_TYPE_S', 'ASSET_TYPE_P', 'ASSET_TYPE_C',
    'ASSET_TYPE_ERC20', 'ASSET_TYPE_ERC721', 'ASSET_TYPE_ERC1155')),
  contract_address bytea not null,
  balance numeric(78) not null,
  -- In S, the block since which every change is known and can be subtracted; otherwise block_number.
  since_block int8 not null,
  -- The first head that confirms since_block, and at least block_number.
  due_block int8 not null,
  primary key (address, wallet_id, asset_id, block_number)
);
create index balance_pending_due on balance_pending (network_id, due_block);
-- A reorganization deletes what was read at removed blocks.
create index balance_pending_block on balance_pending (network_id, block_number);
create index balance_pending_wallet on balance_pending (wallet_id);

-- All balances of a network must be read again at this block or later, because earlier blocks were missed. The
-- rows of balance_change are made page by page: for a million balances, one statement would time out.
create table balance_reopening (
  network_id int2 primary key references network,
  block_number int8 not null,
  -- The last balance of the last page; null before the first page.
  wallet_id uuid,
  address bytea,
  asset_id uuid
);

-- Progress of the comparison of all balances with the chain, which continues here after a restart.
create table balance_round (
  network_id int2 primary key references network,
  begin_time timestamptz not null,
  -- The number of balances at the beginning.
  balance_count int8 not null,
  -- The last balance that was compared; null before the first.
  wallet_id uuid,
  address bytea,
  asset_id uuid
);

-- Balances that differed from the chain. The number of rows is bounded.
create table balance_difference (
  difference_id uuid primary key,
  organization_id uuid not null,
  network_id int2 not null references network,
  wallet_id uuid not null,
  address bytea not null,
  asset_id uuid not null,
  expected numeric(78) not null,
  -- Null where the contract fails to return a balance.
  found numeric(78),
  block_number int8 not null,
  reason text not null,
  create_time timestamptz not null
);
create index balance_difference_time on balance_difference (network_id, create_time);
