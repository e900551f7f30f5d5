-- How far the comparison of all balances with the chain has come; it goes on there after a restart.
create table balance_round (
  chain_id int2 primary key references chain,
  begin_time timestamptz not null,
  -- How many balances there were when it began.
  balance_count int8 not null,
  -- The last one that was compared; null before the first.
  wallet_id uuid,
  address bytea,
  asset_id uuid
);

-- Balances that were not what the chain says, newest last; bounded in number.
create table balance_difference (
  difference_id uuid primary key,
  organization_id uuid not null,
  chain_id int2 not null references chain,
  wallet_id uuid not null,
  address bytea not null,
  asset_id uuid not null,
  expected numeric(78) not null,
  -- Null where the contract that holds it fails.
  found numeric(78),
  block_number int8 not null,
  reason text not null,
  create_time timestamptz not null
);
create index balance_difference_time on balance_difference (chain_id, create_time);
