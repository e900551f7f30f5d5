-- A notification that a reorganization has taken back is of no block any more: block_number is null.
-- The next notification of the same block and transaction gets an id of another generation then. Here
-- for what was taken back before: its follow-up has the id that src/lib/hash-id.ts makes of 'reorged'
-- and its own. Older blocks cannot come back.
with sent as (
  select d.webhook_history_id,
    substr(sha256(convert_to('7:reorged36:' || d.webhook_history_id, 'UTF8')), 1, 16) as digest
  from tracker_cursor c join delivery d on d.chain_id = c.chain_id
  where d.block_number > c.block_number - 1000 and d.due_block is null),
named as (
  select webhook_history_id, encode(
    set_byte(set_byte(digest, 6, (get_byte(digest, 6) & 15) | 128),
      8, (get_byte(digest, 8) & 63) | 128), 'hex')::uuid as follow_up_id
  from sent)
update delivery d set block_number = null
from named n
where d.webhook_history_id = n.webhook_history_id and exists (
  select 1 from delivery f where f.webhook_history_id = n.follow_up_id);
