-- When the first gap asked for the walk that reads all balances again. Null where none did, as after a rewind, and in a row of an
-- earlier version.
alter table balance_reopening add column gap_time timestamptz;
-- The end of the last such walk because of gaps. Because of further ones there is another a pause later. Null before the first.
alter table network add column reopen_time timestamptz;
