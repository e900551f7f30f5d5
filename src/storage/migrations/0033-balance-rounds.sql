-- How many balances a round has passed, so that the rest of it is spread over the rest of its time, and which round it is.
-- After the balances that are stored, a round looks for balances that are not, address by address. Null in the row of a
-- round that an earlier version began.
alter table balance_round
  add column round_number int8,
  add column passed_count int8,
  add column looks_for_missing boolean;
-- Set by a rewind: the balance holds what will be stored again, so nothing is added to it until it is read. Null otherwise.
alter table balance add column is_stale boolean;
