-- The block at which the contract that holds a balance failed to tell it; the balance is then the last
-- one that could be read. Null while it can be read.
alter table balance add column unreadable_block int8;
