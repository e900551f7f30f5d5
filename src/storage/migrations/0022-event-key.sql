-- An event is identified by its id. The key of names and times failed when two processes opened an event in the same
-- millisecond, and when an event was opened again in the millisecond in which it began: `on conflict` names the index of
-- open events, so a conflict in another index is an error.

alter table operational_event drop constraint operational_event_pkey;
alter table operational_event add primary key using index operational_event_id;
