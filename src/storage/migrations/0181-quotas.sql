-- How much an organization may have of something, where that differs from the configuration.
create table quota (
  organization_id uuid not null references organization,
  quota_name text not null check (quota_name in ('QUOTA_WALLETS', 'QUOTA_ADDRESSES',
    'QUOTA_WEBHOOKS', 'QUOTA_WEBHOOK_HEADERS', 'QUOTA_CONTRACTS', 'QUOTA_OPEN_TRANSACTIONS')),
  quota_limit int8 not null check (quota_limit >= 0),
  update_time timestamptz not null,
  primary key (organization_id, quota_name)
);

-- How much an organization has of what is counted with every change. Open transactions are counted
-- when one is created: the blocks that end them should not wait for a counter.
create table quota_use (
  organization_id uuid not null,
  quota_name text not null check (quota_name in ('QUOTA_WALLETS', 'QUOTA_ADDRESSES',
    'QUOTA_WEBHOOKS', 'QUOTA_WEBHOOK_HEADERS', 'QUOTA_CONTRACTS')),
  used int8 not null,
  primary key (organization_id, quota_name)
) with (fillfactor = 50);

insert into quota_use (organization_id, quota_name, used)
select organization_id, 'QUOTA_WALLETS', count(*) from wallet
where remove_time is null group by organization_id
union all
select organization_id, 'QUOTA_ADDRESSES', sum(address_count) from wallet group by organization_id
union all
select organization_id, 'QUOTA_WEBHOOKS', count(*) from webhook group by organization_id
union all
select organization_id, 'QUOTA_WEBHOOK_HEADERS', count(*) from webhook_header group by organization_id
union all
select organization_id, 'QUOTA_CONTRACTS', count(*) from contract group by organization_id;

-- How many transactions of an organization are open.
create index managed_transaction_quota on managed_transaction (organization_id)
  where transaction_state in ('TRANSACTION_STATE_CREATED', 'TRANSACTION_STATE_SIGNED',
    'TRANSACTION_STATE_SENDING', 'TRANSACTION_STATE_SENT', 'TRANSACTION_STATE_MINED');
