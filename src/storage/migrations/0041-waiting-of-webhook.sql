-- What waits for its block, of one webhook: to change its confirmation or to remove it. The other index has all webhooks of the
-- organization, which may be thousands.
create index concurrently if not exists delivery_waiting_of_webhook on delivery (webhook_id, due_block)
  where due_block is not null;
