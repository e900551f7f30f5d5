-- Organizations that are being erased, or were: the report outlives the organization.
create table organization_deletion (
  organization_id uuid primary key,
  request_time timestamptz not null,
  -- Null while rows are removed.
  finish_time timestamptz,
  -- Rows that were removed, by table.
  erased jsonb not null,
  -- Found when the deletion was requested.
  credential_count int8 not null,
  webhook_count int8 not null,
  canceled_transaction_count int8 not null,
  in_flight_transaction_count int8 not null
);
create index organization_deletion_open on organization_deletion (request_time)
  where finish_time is null;
