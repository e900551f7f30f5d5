-- Which balances were read at which blocks, for as long as these can leave the chain: then they are
-- read again, however little else tells of them. One row for all that was read together, because a
-- row for each balance was a fifth of the database's work while catching up.
create table balance_reading (
  chain_id int2 not null references chain,
  block_number int8 not null,
  reading_id uuid not null,
  -- Lists of wallet_id, address and asset_id, side by side.
  pairs jsonb not null,
  primary key (chain_id, block_number, reading_id)
);
-- Written once and seldom read: compressing it would cost more than it saves.
alter table balance_reading alter column pairs set storage external;

insert into balance_reading (chain_id, block_number, reading_id, pairs)
select chain_id, block_number, gen_random_uuid(), jsonb_build_object('wallet_ids', jsonb_agg(wallet_id),
  'addresses', jsonb_agg(encode(address, 'hex')), 'asset_ids', jsonb_agg(asset_id))
from balance_change where apply_time is not null group by chain_id, block_number;
delete from balance_change where apply_time is not null;
drop index balance_change_due;
alter table balance_change drop column apply_time;
-- What the new head makes due.
create index balance_change_due on balance_change (chain_id, due_block);

-- Every row comes from a tracked address and a known asset already: asking again for each of them
-- was a third of storing it.
alter table balance drop constraint balance_wallet_id_fkey;
alter table balance drop constraint balance_asset_id_fkey;
