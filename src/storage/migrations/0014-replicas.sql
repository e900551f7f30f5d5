-- Up to which position of the WAL an organization has written. A replica that has not come so far does not answer it.

create table organization_write (
  organization_id uuid primary key,
  -- Bytes since the beginning of the WAL.
  lsn int8 not null,
  write_time timestamptz not null
) with (fillfactor = 50);
