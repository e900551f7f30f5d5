-- Warnings at creation, expiry of what was never signed, and lists by state.

alter table managed_transaction
  -- What was doubtful when it was created, as sentences.
  add column warnings jsonb;

-- What the sender expires.
create index managed_transaction_unsigned on managed_transaction (chain_id, create_time)
  where transaction_state = 'TRANSACTION_STATE_CREATED';
-- ListTransactions of a wallet or an address, by state.
create index managed_transaction_wallet_state
  on managed_transaction (wallet_id, transaction_state, create_time, transaction_id);
create index managed_transaction_address_state on managed_transaction
  (organization_id, chain_id, "from", transaction_state, create_time, transaction_id);
