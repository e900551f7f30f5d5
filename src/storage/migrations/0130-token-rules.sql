-- Tokens that are tracked for every address of a wallet, or without a wallet of an organization (T, S),
-- those that are registered later included. The id is a hash of the other columns.
create table token_rule (
  rule_id uuid primary key,
  organization_id uuid not null references organization,
  chain_id int2 not null references chain,
  wallet_id uuid references wallet,
  asset_id uuid not null references asset,
  create_time timestamptz not null
);
-- The tracker's look-up: who tracks the tokens of this block.
create index token_rule_asset on token_rule (chain_id, asset_id, organization_id);
-- The tokens of a new address, and counting those of an organization.
create index token_rule_owner on token_rule (organization_id, chain_id, wallet_id);
