-- Progress of the tracker.

-- Recent blocks, against which the parent of a new block is checked.
create table block (
  network_id int2 not null references network,
  block_number int8 not null,
  block_hash bytea not null,
  parent_hash bytea not null,
  block_time timestamptz not null,
  primary key (network_id, block_number)
);

-- The last processed block.
create table tracker_cursor (
  network_id int2 not null references network,
  name text not null,
  block_number int8 not null,
  block_hash bytea not null,
  -- Other state of the chain, such as the shard tops of T.
  detail jsonb,
  update_time timestamptz not null,
  primary key (network_id, name)
) with (fillfactor = 10);

-- Blocks that no node could serve. They are reported and refilled later, never skipped silently.
create table tracker_gap (
  network_id int2 not null references network,
  from_block int8 not null,
  to_block int8 not null,
  reason text not null,
  -- Failed attempts to refill it, and when the next one is due.
  attempts int4 not null,
  next_time timestamptz,
  -- When the balances were marked to be read again because of the gap.
  reopen_time timestamptz,
  create_time timestamptz not null,
  close_time timestamptz,
  primary key (network_id, from_block)
);
create index tracker_gap_open on tracker_gap (network_id, next_time) where close_time is null;
