-- Nonces are committed without waiting for the disk; what a crash of the server forgets of them is
-- refused by its time instead. Unlogged, because that is how the server itself tells of a crash: the
-- row is there after a clean stop, and gone after a crash, on a promoted standby and in a restored
-- base backup.
create unlogged table nonce_memory (
  id int2 primary key check (id = 1),
  -- Nonces up to this time may have been spent and forgotten.
  trusted_after timestamptz not null
);
insert into nonce_memory (id, trusted_after) values (1, '-infinity');
