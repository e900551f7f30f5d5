-- The block after which a token counts that a rule tracks at an address (T). The token account is found
-- some time later; blocks in between are read again. Null for a token that was imported for the address.
alter table token_import add column since_block int8;
