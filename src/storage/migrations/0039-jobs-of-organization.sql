-- A claim takes the oldest due job of each organization, however many jobs another one has.
create index concurrently if not exists job_due_of_organization on job (kind, network_id, organization_id, next_attempt_time);
drop index concurrently if exists job_due_of_network;
