-- Events that a broker refuses are set aside and named by an operational event.

alter table operational_event drop constraint operational_event_kind_check;
alter table operational_event add constraint operational_event_kind_check check (kind in (
  'tracker_failing', 'tracker_stalled', 'gap', 'node_lost', 'webhook_disabled', 'limit_near',
  'transaction_stuck', 'balance_repaired', 'sink_event_refused')) not valid;
alter table operational_event validate constraint operational_event_kind_check;
