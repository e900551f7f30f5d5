-- Couriers look at the queues organization by organization, at a bounded number of webhooks of each.
create index concurrently if not exists delivery_queue_of_organization
  on delivery_queue (organization_id, webhook_id, next_attempt_time, sequence) where next_attempt_time is not null;
drop index concurrently if exists delivery_queue_due;
