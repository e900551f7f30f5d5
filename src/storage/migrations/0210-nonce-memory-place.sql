-- A dump contains the row of nonce_memory but not the nonces that were spent after it. So the row says
-- where and by which transaction it was written: a row that was copied by a restore has another xmin,
-- another table or another server. Nullable, because null means "not known yet".
alter table nonce_memory
  add written_by xid,
  add written_as oid,
  add system_identifier text,
  add timeline text,
  add database_oid oid,
  -- When a service last kept this row. It only grows: a lower value is that of an older copy.
  add seen_time timestamptz,
  -- Nonces up to this time, plus the lead of their credential, may have been spent before a restore.
  add restored_after timestamptz;
update nonce_memory set written_by = pg_current_xact_id()::xid, written_as = tableoid;

-- How far ahead of the database's clock the nonces of a credential have been: after a restore its
-- nonces are refused for that much longer, because they were signed for a later time.
alter table credential add nonce_lead_ms int4;
