-- The block that confirms a transaction, or with which its nonce is lost to another one. It follows changes of the wallet's
-- confirmation. Null while no block holds the nonce, and of rows that an earlier version wrote.
alter table managed_transaction add column due_block int8;
