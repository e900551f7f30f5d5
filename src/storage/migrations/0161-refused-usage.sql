-- Calls that a rate limit refused are counted apart from those that failed: without them the counts of the
-- methods add up to what the limits have counted.
alter table method_usage add column refused_count int8 not null default 0;
alter table method_usage alter column refused_count drop default;
