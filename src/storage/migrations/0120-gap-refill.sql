-- Gaps are refilled by themselves: when the next attempt is due, how many have failed, and when the
-- balances were read again because of the gap.
alter table tracker_gap
  add column attempts int4 not null default 0,
  add column next_time timestamptz,
  add column reopen_time timestamptz;
alter table tracker_gap alter column attempts drop default;
-- Those that are open were noticed by a version that read the balances at once.
update tracker_gap set reopen_time = create_time;
create index tracker_gap_open on tracker_gap (chain_id, next_time) where close_time is null;
-- Whether blocks of this network were ever traced: from then on one that was not is a gap.
alter table chain add column is_traced boolean not null default false;
alter table chain alter column is_traced drop default;
