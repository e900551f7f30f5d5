-- Each lets a statement read rows of its own organization or network only. Without them, the planner may pass those of all others.
create index concurrently if not exists job_due_of_network on job (kind, network_id, next_attempt_time);
drop index concurrently if exists job_due;
-- ListTransactions without a wallet and an address.
create index concurrently if not exists managed_transaction_list
  on managed_transaction (organization_id, network_id, create_time, transaction_id);
-- The most confirmations of a wallet of a network.
create index concurrently if not exists wallet_confirmation on wallet (network_id, confirmation) where remove_time is null;
