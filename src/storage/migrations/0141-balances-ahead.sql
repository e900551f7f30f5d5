-- Whether the balance is read at the newest block instead of a confirmed one, and kept until that block
-- is confirmed: nodes have the states of few blocks (full nodes of 128), and a wallet may ask for more
-- confirmations. Null where it is not.
alter table balance_change add column ahead boolean;

-- Balances that were read at a block which has not the wallet's confirmation yet.
create table balance_pending (
  wallet_id uuid not null,
  address bytea not null,
  asset_id uuid not null,
  block_number int8 not null,
  organization_id uuid not null,
  chain_id int2 not null references chain,
  asset_type text not null,
  contract_address bytea not null,
  balance numeric(78) not null,
  -- The block since which every net change is known, which can be taken off again (S); elsewhere the same.
  since_block int8 not null,
  -- The first head at which that has the confirmation, and not below the block itself.
  due_block int8 not null,
  primary key (address, wallet_id, asset_id, block_number)
);
create index balance_pending_due on balance_pending (chain_id, due_block);
-- A reorganization takes back what was read at blocks that left the chain.
create index balance_pending_block on balance_pending (chain_id, block_number);
create index balance_pending_wallet on balance_pending (wallet_id);

-- All balances of a chain are to be read again at a block or later, because blocks before it were not
-- seen. One row instead of work for each of them, which is made page by page: for a million balances it
-- took longer than a statement may.
create table balance_reopening (
  chain_id int2 primary key references chain,
  block_number int8 not null,
  -- The last one of which work was made; null before the first.
  wallet_id uuid,
  address bytea,
  asset_id uuid
);
