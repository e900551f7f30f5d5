-- Organizations, credentials, replay protection, limits and usage.

create table organization (
  organization_id uuid primary key,
  name text not null,
  domain text not null,
  disable_time timestamptz,
  create_time timestamptz not null,
  update_time timestamptz not null,
  constraint organization_domain_key unique (domain),
  constraint organization_domain_check
    check (length(domain) between 1 and 50 and domain ~ '^[a-z0-9]+(-[a-z0-9]+)*$')
);
-- ListOrganizations pages in order of creation.
create index organization_list on organization (create_time, organization_id);

-- Deletions of organizations, running and finished. The report outlives the organization.
create table organization_deletion (
  organization_id uuid primary key,
  request_time timestamptz not null,
  -- Null while rows are being deleted.
  finish_time timestamptz,
  -- Deleted rows by table.
  erased jsonb not null,
  -- The counts at the time of the request.
  credential_count int8 not null,
  webhook_count int8 not null,
  canceled_transaction_count int8 not null,
  in_flight_transaction_count int8 not null
);
create index organization_deletion_open on organization_deletion (request_time)
  where finish_time is null;

create table credential (
  credential_id uuid primary key,
  organization_id uuid not null references organization,
  role text not null check (role in ('ROLE_ADMIN', 'ROLE_OWNER', 'ROLE_MEMBER', 'ROLE_READER')),
  name text not null,
  -- SHA-256 of the key. Look-ups need no plain key, so that a dump of the database grants no access.
  api_key_hash bytea not null constraint credential_api_key_hash_key unique,
  api_key_sealed bytea not null,
  api_secret_sealed bytea not null,
  -- Whether the key contains a MAC, so that a guessed key is refused without a look-up. Null counts as false.
  has_mac boolean,
  -- Null where nothing is restricted.
  scopes text[],
  allowed_client_networks text[],
  expire_time timestamptz,
  -- The credential that a rotation created to replace this one.
  successor_credential_id uuid,
  -- Incremented by every change of permissions. The statement that stores a nonce compares it, so that a
  -- process with a cached older revision notices. Null is the first revision.
  revision int4,
  -- How far the nonces of this credential have been ahead of the database's clock. After a restore, its
  -- nonces are refused for that much longer.
  nonce_lead_ms int4,
  create_time timestamptz not null,
  last_used_time timestamptz,
  last_used_address text
) with (fillfactor = 80);
-- ListCredentials pages in order of creation.
create index credential_list on credential (organization_id, create_time, credential_id);
-- Whether any key without a MAC exists is asked often; this index answers from one page.
create index credential_without_mac on credential ((true)) where has_mac is not true;

-- Spent nonces, against replays. No foreign key: the nonces of a deleted credential expire by themselves.
create table request_nonce (
  credential_id uuid not null,
  nonce text not null,
  expire_time timestamptz not null,
  primary key (credential_id, nonce)
) with (autovacuum_vacuum_scale_factor = 0.02);
-- The janitor deletes expired nonces, oldest first.
create index request_nonce_expire on request_nonce (expire_time);

-- Since when request_nonce is complete. Nonces are committed without waiting for the disk; nonces that a
-- crash may have lost are refused by their time instead.
--
-- The table is unlogged because PostgreSQL empties unlogged tables after a crash, on a promoted standby and
-- in a restored base backup, but keeps them after a clean stop. A dump, a copied table and copied files of a
-- stopped server do contain the row: the columns below identify the transaction, the table and the server
-- that wrote it, and a mismatch means that the row is a copy. Null means "not known yet".
create unlogged table nonce_memory (
  id int2 primary key check (id = 1),
  -- Nonces up to this time may have been spent and lost.
  trusted_after timestamptz not null,
  -- The xmin and the tableoid of the row when it was written.
  written_by xid,
  written_as oid,
  system_identifier text,
  timeline text,
  database_oid oid,
  -- The start of the server on which the row was written. After another start, older nonces are refused.
  server_start_time timestamptz,
  -- When a service last renewed the row. It never decreases: a lower value is that of an older copy.
  seen_time timestamptz,
  -- Nonces up to this time, plus the lead of their credential, may have been spent before a restore.
  restored_after timestamptz
);
-- A new database has no credentials, so no nonce can have been spent: it is trusted at once.
insert into nonce_memory (id, trusted_after, written_by, written_as, server_start_time)
values (1, '-infinity', pg_current_xact_id()::xid, 'nonce_memory'::regclass, pg_postmaster_start_time());

-- Responses to requests with an Idempotency-Key header. A claim is committed before the operation runs. The
-- response is stored in the transaction that creates the resource, if the claim is still the caller's.
create table idempotency_key (
  credential_id uuid not null,
  -- SHA-256 of the header.
  key_hash bytea not null,
  organization_id uuid not null,
  operation text not null,
  -- SHA-256 of the body.
  request_hash bytea not null,
  claim_id uuid not null,
  -- Another request may take over a claim without a response after this time.
  claim_until timestamptz not null,
  expire_time timestamptz not null,
  -- Sealed: it may contain secrets, such as those of a new credential.
  answer_sealed bytea,
  primary key (credential_id, key_hash)
);
create index idempotency_key_organization on idempotency_key (organization_id);
create index idempotency_key_expire on idempotency_key (expire_time);

create table rate_limit (
  organization_id uuid not null references organization,
  -- '*' applies to chains without a row of their own.
  chain text not null,
  -- -1 is unlimited.
  per_second_limit int8 not null check (per_second_limit >= -1),
  per_hour_limit int8 not null check (per_hour_limit >= -1),
  per_day_limit int8 not null check (per_day_limit >= -1),
  per_month_limit int8 not null check (per_month_limit >= -1),
  create_time timestamptz not null,
  update_time timestamptz not null,
  primary key (organization_id, chain)
);

-- Calls counted against the rate limits.
create table rate_usage (
  organization_id uuid not null,
  chain text not null,
  period text not null check (period in ('hour', 'day', 'month')),
  period_start timestamptz not null,
  used int8 not null,
  primary key (organization_id, chain, period, period_start)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);
-- The janitor deletes past periods.
create index rate_usage_age on rate_usage (period, period_start);

-- Calls by day, credential and method.
create table method_usage (
  organization_id uuid not null,
  day date not null,
  credential_id uuid not null,
  chain text not null,
  network text not null,
  method text not null,
  call_count int8 not null,
  error_count int8 not null,
  -- Calls refused by a rate limit. call_count without these equals what the limits counted.
  refused_count int8 not null,
  primary key (organization_id, day, credential_id, chain, network, method)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);

-- Quotas of organizations that differ from the configuration.
create table quota (
  organization_id uuid not null references organization,
  quota_name text not null check (quota_name in ('QUOTA_WALLETS', 'QUOTA_ADDRESSES',
    'QUOTA_WEBHOOKS', 'QUOTA_WEBHOOK_HEADERS', 'QUOTA_CONTRACTS', 'QUOTA_OPEN_TRANSACTIONS')),
  quota_limit int8 not null check (quota_limit >= 0),
  update_time timestamptz not null,
  primary key (organization_id, quota_name)
);

-- Current use, updated with every change. Open transactions are counted on demand instead, so that the
-- blocks that complete them do not wait for a counter.
create table quota_use (
  organization_id uuid not null,
  quota_name text not null check (quota_name in ('QUOTA_WALLETS', 'QUOTA_ADDRESSES',
    'QUOTA_WEBHOOKS', 'QUOTA_WEBHOOK_HEADERS', 'QUOTA_CONTRACTS')),
  used int8 not null,
  primary key (organization_id, quota_name)
) with (fillfactor = 50);
