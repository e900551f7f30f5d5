-- A rollback stores one notification_event for an organization with many notifications of the removed blocks.

alter table notification_event add column event_kind text not null default 'TRANSFERS'
  check (event_kind in ('TRANSFERS', 'REORGANIZATION'));
alter table notification_event alter column event_kind drop default;
-- Null for REORGANIZATION, whose block_number is the first block that was removed.
alter table notification_event alter column wallet_ids drop not null;
alter table notification_event alter column event_key drop not null;
alter table notification_event alter column notification_type drop not null;
alter table notification_event alter column data drop not null;
alter table notification_event alter column transaction_hash drop not null;

-- Notifications of removed blocks are retracted organization by organization.
drop index delivery_block;
create index delivery_block on delivery (network_id, organization_id, block_number)
  where block_number is not null;
