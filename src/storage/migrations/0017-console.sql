-- What the console shows of deliveries, methods and WebSockets.

-- Headers of an attempt as JSON: a list of name and value, where null stands for a value that is not kept. Headers
-- that every attempt has, or that follow from the row, are left out of request_headers.
alter table delivery_attempt add column request_headers text;
alter table delivery_attempt add column response_headers text;

-- Calls of the gateway by latency: the bounds are powers of two of a microsecond (`latencyBounds`). Null for
-- operations, and where no call was answered.
alter table method_usage add column latency_counts int8[];

-- The WebSockets of all processes. Each process writes its own rows when one of them asks; they are of no use later.
create unlogged table websocket_client (
  holder uuid not null,
  client_number int4 not null,
  report_time timestamptz not null,
  organization_id uuid not null,
  credential_id uuid not null,
  chain text not null,
  network text not null,
  client text not null,
  open_time timestamptz not null,
  -- The number of subscriptions by their name.
  subscriptions jsonb not null,
  buffered_bytes int8 not null,
  primary key (holder, client_number)
);
