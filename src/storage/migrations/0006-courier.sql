-- What the courier needs to claim and to repeat deliveries.

alter table delivery
  -- Until then one courier has it. Moves nothing in any index, so that a claim writes one row only.
  add column claim_expire_time timestamptz,
  -- How many attempts of the present round have failed: a round begins anew when a webhook is enabled
  -- or a delivery is asked for again, delivery_count goes on.
  add column retry_step int2 not null default 0;
alter table delivery alter column retry_step drop default;

-- Claims go webhook by webhook: one that is stuck with a long queue costs the others one look.
drop index delivery_due;
drop index delivery_webhook_due;
create index delivery_webhook_due on delivery (webhook_id, next_attempt_time, sequence)
  where next_attempt_time is not null;

-- Lists have no waiting rows, which may be many at a high confirmation.
drop index delivery_list;
drop index delivery_webhook_list;
create index delivery_list on delivery (organization_id, chain_id, create_time, webhook_history_id)
  where sequence is not null;
create index delivery_webhook_list on delivery (webhook_id, create_time, webhook_history_id)
  where sequence is not null;

-- A header has one value per webhook, and one for all.
create unique index webhook_header_key
  on webhook_header (organization_id, chain_id, webhook_id, lower(header_key)) nulls not distinct;
