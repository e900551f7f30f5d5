-- What an operator must know: one row from the moment that something is wrong until it is right again.
-- `subject` tells apart several of one kind on one network (a gap's first block); empty where there is one.
create table operational_event (
  kind text not null,
  chain text not null,
  network text not null,
  subject text not null,
  detail text not null,
  create_time timestamptz not null,
  update_time timestamptz not null,
  -- Null while it lasts.
  resolve_time timestamptz,
  primary key (chain, network, kind, subject, create_time)
);
-- What lasts is there once, whichever process records it.
create unique index operational_event_open on operational_event (chain, network, kind, subject)
  where resolve_time is null;
-- The newest for lists, the oldest for the janitor.
create index operational_event_list on operational_event (create_time);
