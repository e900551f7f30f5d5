-- Up to this block everything had its confirmation before UpdateConfirmation asked for more: what was
-- confirmed once stays so. A reorganization takes it back. Null where the confirmation never changed.
alter table wallet add column confirmed_block int8;
-- A reorganization finds the few that it concerns.
create index wallet_confirmed_block on wallet (chain_id, confirmed_block)
  where confirmed_block is not null;
