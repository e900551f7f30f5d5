-- The nonces of an address that are held. Without those that were canceled: a nonce may have been created and canceled any number
-- of times, and each new transaction would read all of them.
create index concurrently if not exists managed_transaction_held on managed_transaction (network_id, "from", nonce)
  where transaction_state <> 'TRANSACTION_STATE_CANCELED';
-- Whether an organization has shown a signature of an address.
create index concurrently if not exists managed_transaction_shown
  on managed_transaction (organization_id, network_id, "from") where transaction_hash is not null;
drop index concurrently if exists managed_transaction_sender;
