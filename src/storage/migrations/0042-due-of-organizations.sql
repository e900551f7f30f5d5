-- What a block confirms of each organization: where one has more than its share, the block takes the share only. Whether anything
-- is due at all is still found along the index of 0030.
create index concurrently if not exists managed_transaction_due_of_organization
  on managed_transaction (network_id, organization_id, coalesce(due_block, 0))
  where transaction_state in ('TRANSACTION_STATE_SENDING', 'TRANSACTION_STATE_SENT', 'TRANSACTION_STATE_MINED')
    and coalesce(block_number, replaced_block_number) is not null;
-- The same of balance work and of readings that wait. Whether anything is due at all is still found along the indexes of 0004.
-- Net changes and work that needs a reading are taken apart: a row is in one of both indexes. `ahead` of a net change says that there
-- was no balance to which it could be added, so that it waits for a reading.
create index concurrently if not exists balance_change_due_deltas
  on balance_change (network_id, organization_id, due_block) where delta is not null and ahead is not true;
create index concurrently if not exists balance_change_due_unread
  on balance_change (network_id, organization_id, due_block) where (delta is null or ahead);
create index concurrently if not exists balance_pending_due_of_organization
  on balance_pending (network_id, organization_id, due_block);
