-- ListWebhookHistories of one transaction. Notifications that wait are left out, as in the other lists; so are those without a
-- hash. The hash is not ordered by time, so that each entry is on a page of its own; a transaction with many webhooks
-- has its entries side by side.
create index concurrently if not exists delivery_transaction_list
  on delivery (organization_id, network_id, transaction_hash, create_time, webhook_history_id)
  where sequence is not null and transaction_hash is not null;
