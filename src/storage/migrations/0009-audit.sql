-- The audit log.

-- Events are stored here before the change that they describe. One worker moves them to audit_event, so that
-- writers do not wait for each other.
create table audit_pending (
  event_id uuid primary key,
  event_time timestamptz not null,
  actor_type text not null check (actor_type in ('ACTOR_TYPE_CREDENTIAL', 'ACTOR_TYPE_COMMAND_LINE',
    'ACTOR_TYPE_SERVICE', 'ACTOR_TYPE_UNKNOWN')),
  credential_id uuid,
  role text check (role in ('ROLE_ADMIN', 'ROLE_OWNER', 'ROLE_MEMBER', 'ROLE_READER')),
  -- The organization of the actor, and the one that the event concerns.
  principal_organization_id uuid,
  organization_id uuid,
  service text not null,
  operation text not null,
  -- Null until the operation has ended.
  result text check (result in ('AUDIT_RESULT_SUCCEEDED', 'AUDIT_RESULT_FAILED',
    'AUDIT_RESULT_REFUSED', 'AUDIT_RESULT_UNKNOWN')),
  reason text,
  event_count int4 not null,
  -- JSON text: the client's address and the subject of the request. Never secrets or whole keys.
  detail text not null
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);

-- The hash chain: every hash covers the event and the hash before it.
create table audit_event (
  sequence int8 primary key,
  event_id uuid not null,
  event_time timestamptz not null,
  actor_type text not null check (actor_type in ('ACTOR_TYPE_CREDENTIAL', 'ACTOR_TYPE_COMMAND_LINE',
    'ACTOR_TYPE_SERVICE', 'ACTOR_TYPE_UNKNOWN')),
  credential_id uuid,
  role text check (role in ('ROLE_ADMIN', 'ROLE_OWNER', 'ROLE_MEMBER', 'ROLE_READER')),
  principal_organization_id uuid,
  organization_id uuid,
  service text not null,
  operation text not null,
  result text not null check (result in ('AUDIT_RESULT_SUCCEEDED', 'AUDIT_RESULT_FAILED',
    'AUDIT_RESULT_REFUSED', 'AUDIT_RESULT_UNKNOWN')),
  reason text,
  event_count int4 not null,
  -- The chain covers the salted hash, so that the detail can be erased and the chain still verifies.
  detail text,
  detail_salt bytea,
  detail_hash bytea not null,
  hash bytea not null,
  -- On the last event of each batch, by the key in audit_chain.
  signature bytea
);
-- ListAuditEvents of the installation and of an organization; retention.
create index audit_event_time on audit_event (event_time, sequence);
create index audit_event_organization on audit_event (organization_id, event_time, sequence)
  where organization_id is not null;

-- The signing key and the two ends of the chain; one row.
create table audit_chain (
  id int2 primary key check (id = 1),
  public_key bytea not null,
  private_key_sealed bytea not null,
  -- The last event that retention deleted; the chain continues from its hash.
  anchor_sequence int8 not null,
  anchor_hash bytea not null,
  anchor_time timestamptz not null,
  anchor_signature bytea not null,
  head_sequence int8 not null,
  head_hash bytea not null,
  head_time timestamptz not null,
  head_signature bytea not null
);
