-- Files that were copied from a stopped server carry a correct nonce_memory, but lack the nonces that
-- were spent after the copy. To use them the server has to start. So the row says since when the server
-- that it was written on had been running: after any other start, nonces from before it are refused.
-- Null means "not known", which counts as another start.
alter table nonce_memory add server_start_time timestamptz;
-- Without a credential no nonce can have been spent: a new database is trusted at once.
update nonce_memory set server_start_time = pg_postmaster_start_time(), written_by = pg_current_xact_id()::xid
where not exists (select from credential);
