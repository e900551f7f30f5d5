-- What the sender keeps of its attempts, and of another transaction that took the nonce.

alter table managed_transaction
  -- Goes up before every attempt, so that only the newest one says what came of it.
  add column broadcast_count int4 not null default 0,
  -- An attempt may have left the bytes somewhere: from then on no refusal proves that they are nowhere.
  add column is_unsure boolean not null default false,
  -- When the sender looks after it again; null while the chain or the user has to move first.
  add column next_broadcast_time timestamptz,
  -- The block of `replaced_by`.
  add column replaced_block_number int8;
alter table managed_transaction
  alter column broadcast_count drop default,
  alter column is_unsure drop default;

-- What is due for the sender.
create index managed_transaction_due on managed_transaction (chain_id, next_broadcast_time)
  where next_broadcast_time is not null;
-- What a reorganization takes back.
create index managed_transaction_block on managed_transaction (chain_id, block_number)
  where block_number is not null;
create index managed_transaction_replaced on managed_transaction (chain_id, replaced_block_number)
  where replaced_block_number is not null;
-- The nonces of an address, those of the past too: a count may be older than what has just ended.
create index managed_transaction_sender on managed_transaction (chain_id, "from", nonce);
