-- The schema of the whole service, in four files: access, wallets, webhooks, transactions.
-- Columns carry the names of the wire; PostgreSQL 15+.
--   ids        UUIDv7 made by the service, so that no sequence is needed and ids sort by age
--   addresses  and hashes are bytea in the chain's canonical form: one account is one key
--   amounts    numeric(78): every uint256 fits
--   times      are given by the service, never by a default: its clock can be moved in tests
--   blocks     block_number is the chain's own height (checkpoint in S, masterchain seqno in T)
-- Tables of tenants carry organization_id, so that every statement can name it.
-- Left out on purpose, for portability: triggers, sequences, advisory locks, BRIN and GIN indexes.

create table chain (
  chain_id int2 primary key,
  chain text not null,
  network text not null,
  -- What the nodes said they are (chain id, genesis hash) the first time: a later answer must match.
  identity text,
  create_time timestamptz not null,
  unique (chain, network)
);

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

create table credential (
  credential_id uuid primary key,
  organization_id uuid not null references organization,
  role text not null check (role in ('ROLE_ADMIN', 'ROLE_MEMBER')),
  name text not null,
  -- SHA-256 of the key: the look-up needs no key in clear, so that a dump opens no gateway.
  api_key_hash bytea not null constraint credential_api_key_hash_key unique,
  api_key_sealed bytea not null,
  api_secret_sealed bytea not null,
  create_time timestamptz not null,
  last_used_time timestamptz
) with (fillfactor = 80);
-- ListCredentials pages in order of creation within one organization.
create index credential_list on credential (organization_id, create_time, credential_id);

-- Logged: a nonce forgotten by a crash could be replayed. Without a foreign key: a deleted
-- credential's nonces simply expire.
create table request_nonce (
  credential_id uuid not null,
  nonce text not null,
  expire_time timestamptz not null,
  primary key (credential_id, nonce)
) with (autovacuum_vacuum_scale_factor = 0.02);
-- The janitor deletes what has expired, oldest first.
create index request_nonce_expire on request_nonce (expire_time);

create table rate_limit (
  organization_id uuid not null references organization,
  -- '*' is the organization's default for chains without a record of their own.
  chain text not null,
  per_second_limit int8 not null check (per_second_limit >= -1),
  per_hour_limit int8 not null check (per_hour_limit >= -1),
  per_day_limit int8 not null check (per_day_limit >= -1),
  per_month_limit int8 not null check (per_month_limit >= -1),
  create_time timestamptz not null,
  update_time timestamptz not null,
  primary key (organization_id, chain)
);

create table rate_usage (
  organization_id uuid not null,
  chain text not null,
  period text not null check (period in ('hour', 'day', 'month')),
  period_start timestamptz not null,
  used int8 not null,
  primary key (organization_id, chain, period, period_start)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);
-- The janitor deletes windows that have passed.
create index rate_usage_age on rate_usage (period, period_start);

create table method_usage (
  organization_id uuid not null,
  day date not null,
  credential_id uuid not null,
  chain text not null,
  network text not null,
  method text not null,
  call_count int8 not null,
  error_count int8 not null,
  primary key (organization_id, day, credential_id, chain, network, method)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);

-- The id is a hash of what is to be done, so that asking twice is one job. Finished jobs are deleted.
create table job (
  job_id uuid primary key,
  kind text not null,
  organization_id uuid,
  chain_id int2,
  payload jsonb not null,
  progress jsonb,
  attempt_count int4 not null,
  next_attempt_time timestamptz not null,
  last_error text,
  create_time timestamptz not null,
  update_time timestamptz not null
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02);
-- Claims take the oldest due jobs of a kind.
create index job_due on job (kind, next_attempt_time);

-- The epoch grows with every change of holder: a writer that was put to sleep is told from its successor.
create table lease (
  name text primary key,
  holder uuid not null,
  epoch int8 not null,
  expire_time timestamptz not null
) with (fillfactor = 50);
