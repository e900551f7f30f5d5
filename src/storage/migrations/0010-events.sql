-- The event stream of an organization on a network is a row of `webhook` without an endpoint: the tracker writes and
-- numbers its notifications like those of any webhook, in the same transactions. They are not queued for delivery.
-- Clients of GET /v1/{chain}/events read them by their sequence.

-- What takes the notifications instead of an endpoint; null is an endpoint.
alter table webhook add column sink text check (sink in ('stream'));
-- One stream for each organization and network.
create unique index webhook_stream on webhook (organization_id, network_id) where sink = 'stream';
-- The newest attempts of an organization, which its streams show.
create index delivery_attempt_time on delivery_attempt (organization_id, attempt_time);
