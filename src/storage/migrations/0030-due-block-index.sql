-- What a block confirms. Without it, each block would read all mined transactions of its network. Rows without a number, which an
-- earlier version wrote, come first.
create index concurrently if not exists managed_transaction_due_block
  on managed_transaction (network_id, coalesce(due_block, 0))
  where transaction_state in ('TRANSACTION_STATE_SENDING', 'TRANSACTION_STATE_SENT', 'TRANSACTION_STATE_MINED')
    and coalesce(block_number, replaced_block_number) is not null;
