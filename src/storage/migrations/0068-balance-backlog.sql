-- Balance work of a batch of blocks, in one row: far behind the head a row for each balance
-- (balance_change) was a third of the database's work. Whoever takes work back or moves it makes
-- balance_change rows of these first; so a row that is here says that since it was written nothing
-- that it names has ceased to be tracked.
create table balance_backlog (
  chain_id int2 not null references chain,
  backlog_id uuid not null,
  -- The last block that makes any of it due.
  due_block int8 not null,
  pair_count int4 not null,
  -- `owners`: wallet, asset and confirmation; `owner` (its place there), `addresses` and `blocks` side by side.
  work jsonb not null,
  primary key (chain_id, backlog_id)
) with (autovacuum_vacuum_scale_factor = 0.02);
-- Written once and read once: compressing it would cost more than it saves.
alter table balance_backlog alter column work set storage external;
