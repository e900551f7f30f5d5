-- UpdateConfirmation goes through what was read ahead for a wallet page by page.
create index concurrently if not exists balance_pending_of_wallet
  on balance_pending (wallet_id, address, asset_id, block_number);
drop index concurrently if exists balance_pending_wallet;
