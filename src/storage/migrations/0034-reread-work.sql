-- Set where a reorganization took a reading back: the work stands for earlier blocks too, so a deeper reorganization must not
-- remove it with its block. Null otherwise.
alter table balance_change add column is_reread boolean;
