-- Balance work that was done is kept for as long as its block can leave the chain: a balance that
-- was read at such a block is then read again, however little else tells of it.
alter table balance_change add column apply_time timestamptz;
drop index balance_change_due;
-- What the new head makes due.
create index balance_change_due on balance_change (chain_id, due_block) where apply_time is null;
