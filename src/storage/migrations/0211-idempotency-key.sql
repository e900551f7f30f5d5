-- Answers of operations that create, by the Idempotency-Key header of the request. A claim is committed
-- before the operation runs; the answer in the same transaction as what the operation creates, and only
-- while the claim is still the caller's.
create table idempotency_key (
  credential_id uuid not null,
  -- SHA-256 of the header.
  key_hash bytea not null,
  organization_id uuid not null,
  operation text not null,
  -- SHA-256 of the body.
  request_hash bytea not null,
  claim_id uuid not null,
  -- An unanswered claim may be taken over after this time.
  claim_until timestamptz not null,
  expire_time timestamptz not null,
  -- May hold secrets, such as those of a new credential.
  answer_sealed bytea,
  primary key (credential_id, key_hash)
);
create index idempotency_key_organization on idempotency_key (organization_id);
create index idempotency_key_expire on idempotency_key (expire_time);
