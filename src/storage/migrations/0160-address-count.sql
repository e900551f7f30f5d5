-- Wallets know how many addresses they have: counting a million rows for each answer took most of a second.
alter table wallet add column address_count int8;
update wallet w set address_count = (select count(*) from wallet_address a where a.wallet_id = w.wallet_id);
alter table wallet alter column address_count set not null;
