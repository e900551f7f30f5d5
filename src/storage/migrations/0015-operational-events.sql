-- Operational events are sent by webhooks, to organizations and to the operator. Events of one organization are stored
-- beside those of networks. Two loops read them: lists of problems of tracking, and the announcements below.

alter table operational_event drop constraint operational_event_kind_check;
alter table operational_event add constraint operational_event_kind_check check (kind in (
  'tracker_failing', 'tracker_stalled', 'gap', 'node_lost', 'webhook_disabled', 'limit_near',
  'transaction_stuck', 'balance_repaired')) not valid;
alter table operational_event validate constraint operational_event_kind_check;
-- The organization that it is about; null is every one on the network.
alter table operational_event add column organization_id uuid;
alter table operational_event add column event_id uuid not null default gen_random_uuid();
alter table operational_event alter column event_id drop default;
create unique index operational_event_id on operational_event (event_id);
-- Erasing an organization.
create index operational_event_organization on operational_event (organization_id)
  where organization_id is not null;

-- How far an event is announced: one row for its beginning and one for its end. Written by the announcer only, so that
-- writers of events never wait for it.
create table operational_announcement (
  event_id uuid not null,
  event_state text not null check (event_state in ('OPENED', 'RESOLVED')),
  -- The last webhook, in the order of ids, whose notification is written.
  after_webhook_id uuid,
  is_done boolean not null,
  primary key (event_id, event_state)
);
-- Events from before are known already.
insert into operational_announcement (event_id, event_state, is_done)
select event_id, 'OPENED', true from operational_event
union all
select event_id, 'RESOLVED', true from operational_event where resolve_time is not null;

-- WEBHOOK_EVENT_OPERATIONAL: events of the organization. WEBHOOK_EVENT_INSTALLATION: those of the installation.
-- Null stays transfers and states of managed transactions.
alter table webhook drop constraint webhook_events_check;
alter table webhook add constraint webhook_events_check check (
  cardinality(events) > 0
  and events <@ array['WEBHOOK_EVENT_TRANSFER', 'WEBHOOK_EVENT_TRANSACTION_STATE',
    'WEBHOOK_EVENT_OPERATIONAL', 'WEBHOOK_EVENT_INSTALLATION']) not valid;
alter table webhook validate constraint webhook_events_check;
-- The receivers of an operational event.
create index webhook_operational on webhook (webhook_id)
  where events && array['WEBHOOK_EVENT_OPERATIONAL', 'WEBHOOK_EVENT_INSTALLATION'];

-- Not validated: the check before was narrower, and the table may be large.
alter table delivery drop constraint delivery_notification_type_check;
alter table delivery add constraint delivery_notification_type_check check (notification_type in (
  'NOTIFICATION_TYPE_T_TRANSACTION_UPDATED', 'NOTIFICATION_TYPE_S_TRANSACTION_UPDATED',
  'NOTIFICATION_TYPE_P_TRANSACTION_UPDATED', 'NOTIFICATION_TYPE_EVM_TRANSACTION_UPDATED',
  'NOTIFICATION_TYPE_OPERATIONAL_EVENT')) not valid;
