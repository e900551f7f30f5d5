-- Attempts lie in the order of their webhooks' numbers: one is written beside the one before it, and a
-- page of history reads neighbours. By their ids, which are hashes, each was on another page of an index
-- that grows with the history: after every checkpoint the log had a copy of each of those pages.

alter table delivery_attempt rename to delivery_attempt_by_id;
alter index delivery_attempt_pkey rename to delivery_attempt_by_id_pkey;
create table delivery_attempt (
  webhook_id uuid not null,
  sequence int8 not null,
  attempt int4 not null,
  organization_id uuid not null,
  attempt_time timestamptz not null,
  duration_ms int4 not null,
  status_code int4,
  error text,
  response_body bytea,
  primary key (webhook_id, sequence, attempt)
);
insert into delivery_attempt (webhook_id, sequence, attempt, organization_id, attempt_time,
  duration_ms, status_code, error, response_body)
select d.webhook_id, d.sequence, a.attempt, a.organization_id, a.attempt_time,
  a.duration_ms, a.status_code, a.error, a.response_body
from delivery_attempt_by_id a join delivery d using (webhook_history_id)
where d.sequence is not null
order by d.webhook_id, d.sequence, a.attempt;
drop table delivery_attempt_by_id;
