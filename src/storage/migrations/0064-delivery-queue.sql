-- What is not delivered yet, apart from what is to be told. A claim and an outcome write a narrow row
-- here, and a notification with its body is written once and never touched again: delivering one costs
-- the database a third of what it cost when all was one row.

create table delivery_queue (
  webhook_history_id uuid primary key,
  organization_id uuid not null,
  webhook_id uuid not null,
  sequence int8 not null,
  -- There is no row of a delivered notification.
  webhook_status text not null check (webhook_status in ('WEBHOOK_STATUS_PENDING',
    'WEBHOOK_STATUS_IN_PROGRESS', 'WEBHOOK_STATUS_FAILED', 'WEBHOOK_STATUS_ON_HOLD')),
  -- Null while it is held, and when no attempt is left.
  next_attempt_time timestamptz,
  -- Until then one courier has it. In no index, so that a claim writes one row only.
  claim_expire_time timestamptz,
  -- How many attempts of the present round have failed: a round begins anew when a webhook is enabled
  -- or a delivery is asked for again.
  retry_step int2 not null
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);

insert into delivery_queue (webhook_history_id, organization_id, webhook_id, sequence,
  webhook_status, next_attempt_time, claim_expire_time, retry_step)
select webhook_history_id, organization_id, webhook_id, sequence, webhook_status,
  next_attempt_time, claim_expire_time, retry_step
from delivery
where sequence is not null and webhook_status <> 'WEBHOOK_STATUS_COMPLETED';

-- Claims go webhook by webhook: one that is stuck with a long queue costs the others one look.
create index delivery_queue_due on delivery_queue (webhook_id, next_attempt_time, sequence)
  where next_attempt_time is not null;
-- EnableWebhook and RetryWebhookHistory pick up what stopped.
create index delivery_queue_stopped on delivery_queue (webhook_id, sequence)
  where next_attempt_time is null;

-- What became of a notification is in the queue and in its attempts. Indexes go with their columns.
alter table delivery
  drop column webhook_status,
  drop column delivery_count,
  drop column delivery_time,
  drop column next_attempt_time,
  drop column last_error,
  drop column update_time,
  drop column claim_expire_time,
  drop column retry_step;
alter table delivery set (fillfactor = 90);
