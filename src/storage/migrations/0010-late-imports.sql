-- The block after which a token counts that a rule tracks at an address (T). The token account is found
-- some time later; blocks in between are read again. Null for a token that was imported for the address.
alter table token_import add column since_block int8;

-- The ranges of blocks that are read again are the job of a network.
alter table job drop constraint job_kind_check;
alter table job add constraint job_kind_check
  check (kind in ('refresh_balances', 'cover_tokens', 'token_metadata', 'reread_blocks'));
