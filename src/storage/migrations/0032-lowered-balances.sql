-- Set after a rewind to a block that is not stored: balances of later blocks are lowered to this one, page by page, before
-- any balance is read again. Null once that is done.
alter table balance_reopening add column lower_to int8;
