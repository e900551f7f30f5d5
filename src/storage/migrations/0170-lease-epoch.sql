-- Makes `epoch` a key column: `for key share` of a writer then excludes a takeover, which changes the
-- epoch, and does not delay a renewal, which changes only the time.
create unique index lease_epoch on lease (name, epoch);
