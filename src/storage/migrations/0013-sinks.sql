-- A sink is a row of `webhook` without an endpoint, like an event stream: the tracker writes and numbers its
-- notifications in the same transactions. This table says where they go and how far they have come.

alter table webhook drop constraint webhook_sink_check;
alter table webhook add constraint webhook_sink_check check (sink in ('stream', 'nats', 'kafka'));

create table sink (
  -- The row of `webhook`. No foreign key: this row stays until the notifications of a removed sink are deleted.
  webhook_id uuid primary key,
  organization_id uuid not null,
  network_id int2 not null,
  sink_type text not null check (sink_type in ('SINK_TYPE_NATS', 'SINK_TYPE_KAFKA')),
  settings jsonb not null,
  -- The sequence of the last notification that the broker has acknowledged.
  position int8 not null,
  publish_time timestamptz,
  -- Grows with every claim. A process that was paused and replaced cannot move the position any more.
  epoch int8 not null,
  claim_expire_time timestamptz,
  -- Failed attempts in a row, and when the next one is due.
  failure_count int4 not null,
  next_attempt_time timestamptz not null,
  remove_time timestamptz,
  create_time timestamptz not null
);

create index sink_organization on sink (organization_id, network_id);
