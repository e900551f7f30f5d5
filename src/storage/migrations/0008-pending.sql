-- When the nodes were last asked whether they still hold it; null asks for it at once.
alter table pending_transaction add column check_time timestamptz;
-- The next to be asked for.
create index pending_transaction_check on pending_transaction (chain_id, check_time nulls first)
  where leave_time is null;
-- ListPendingTransactions looks at what waits; the lookup by sender also finds what a new one replaces.
drop index pending_transaction_sender;
create index pending_transaction_sender on pending_transaction (chain_id, "from", nonce)
  where leave_time is null;
