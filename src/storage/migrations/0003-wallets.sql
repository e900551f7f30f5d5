-- Wallets, their addresses, and the assets and contracts that are tracked for them.

create table wallet (
  wallet_id uuid primary key,
  organization_id uuid not null references organization,
  network_id int2 not null references network,
  name text not null check (length(name) between 1 and 50),
  confirmation int8 not null check (confirmation between 0 and 1000000),
  -- Everything up to this block was confirmed before UpdateConfirmation raised the confirmation, and stays
  -- confirmed. A reorganization lowers it. Null where the confirmation was never raised.
  confirmed_block int8,
  -- Stored, because counting a million rows for each response took most of a second.
  address_count int8 not null,
  create_time timestamptz not null,
  update_time timestamptz not null,
  -- A removed wallet is not listed and has no addresses; its transfers and transactions stay readable.
  remove_time timestamptz
);
-- ListWallets pages in order of creation, which is the order of the ids.
create index wallet_list on wallet (organization_id, network_id, wallet_id);
-- A reorganization finds the few wallets whose confirmed_block it lowers.
create index wallet_confirmed_block on wallet (network_id, confirmed_block)
  where confirmed_block is not null;

-- The key begins with the columns that are known from a block, so that one look-up finds the tracked
-- addresses. It also ensures that an address belongs to one wallet of an organization. Creating a managed
-- transaction locks the row, which serializes the nonces of an address.
create table wallet_address (
  network_id int2 not null references network,
  address bytea not null,
  organization_id uuid not null,
  wallet_id uuid not null references wallet,
  create_time timestamptz not null,
  primary key (network_id, address, organization_id)
);
-- Lists and removes the addresses of a wallet.
create index wallet_address_wallet on wallet_address (wallet_id, address);

-- The id is a hash of chain, type, contract and token id, so that the tracker can compute it.
create table asset (
  asset_id uuid primary key,
  network_id int2 not null references network,
  asset_type text not null check (asset_type in ('ASSET_TYPE_T', 'ASSET_TYPE_S', 'ASSET_TYPE_P', 'ASSET_TYPE_C',
    'ASSET_TYPE_ERC20', 'ASSET_TYPE_ERC721', 'ASSET_TYPE_ERC1155')),
  -- The contract (C), the jetton master (T) or the coin type in UTF-8 (S); empty for the native coin.
  contract_address bytea not null,
  token_id numeric(78) not null,
  -- Metadata from the chain; null until metadata_time.
  name text,
  symbol text,
  decimals int2,
  token_uri text,
  token_data text,
  metadata_time timestamptz,
  create_time timestamptz not null
);
-- The assets of a contract, for its metadata.
create index asset_contract on asset (network_id, contract_address, token_id);

-- Contracts that an organization tracks.
create table contract (
  organization_id uuid not null references organization,
  network_id int2 not null references network,
  contract_address bytea not null,
  contract_type text not null
    check (contract_type in ('CONTRACT_TYPE_ERC20', 'CONTRACT_TYPE_ERC721', 'CONTRACT_TYPE_ERC1155')),
  contract_metadata jsonb,
  create_time timestamptz not null,
  primary key (organization_id, network_id, contract_address)
);
-- The tracker's look-up: which organizations track the contracts of a block.
create index contract_watch on contract (network_id, contract_address);

-- Tokens (jetton, coin type) that are tracked for one address in T and S.
create table token_import (
  network_id int2 not null references network,
  address bytea not null,
  asset_id uuid not null references asset,
  organization_id uuid not null,
  wallet_id uuid not null references wallet,
  token_address bytea not null,
  -- The jetton wallet in T, which is an account of its own; empty in S.
  token_account_address bytea not null,
  -- The block after which a token counts that a rule tracks at an address (T). The token account is found
  -- some time later; blocks in between are read again. Null for a token that was imported for the address.
  since_block int8,
  create_time timestamptz not null,
  primary key (network_id, address, asset_id, organization_id)
);
-- The tracker's look-up of the jetton wallets of a block.
create index token_import_account on token_import (network_id, token_account_address)
  where token_account_address <> '';
-- Removing addresses of a wallet.
create index token_import_wallet on token_import (wallet_id, address);

-- Tokens that are tracked for every address of a wallet or, without a wallet, of an organization (T, S),
-- including addresses registered later. The id is a hash of the other columns.
create table token_rule (
  rule_id uuid primary key,
  organization_id uuid not null references organization,
  network_id int2 not null references network,
  wallet_id uuid references wallet,
  asset_id uuid not null references asset,
  create_time timestamptz not null
);
-- The tracker's look-up: which organizations track the tokens of a block.
create index token_rule_asset on token_rule (network_id, asset_id, organization_id);
-- The tokens of a new address, and the count of an organization.
create index token_rule_owner on token_rule (organization_id, network_id, wallet_id);
