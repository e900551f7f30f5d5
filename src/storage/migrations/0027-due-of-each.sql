-- What is due of each organization: where more is due than a round of the sender takes, each gets its share.
create index concurrently if not exists managed_transaction_due_of_each
  on managed_transaction (network_id, organization_id, next_broadcast_time) where next_broadcast_time is not null;
