-- A stream that is not used for the time of retention subscribes to nothing: an empty list.
alter table webhook drop constraint webhook_events_check;
alter table webhook add constraint webhook_events_check check (
  (cardinality(events) > 0 or sink = 'stream')
  and events <@ array['WEBHOOK_EVENT_TRANSFER', 'WEBHOOK_EVENT_TRANSACTION_STATE',
    'WEBHOOK_EVENT_OPERATIONAL', 'WEBHOOK_EVENT_INSTALLATION']) not valid;
alter table webhook validate constraint webhook_events_check;
