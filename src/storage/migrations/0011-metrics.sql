-- Counts of the installation by minute, for charts without a monitoring system. Kept for two days.

-- One row for each process and minute.
create table metric_minute (
  minute timestamptz not null,
  holder uuid not null,
  request_count int8 not null,
  error_count int8 not null,
  refused_count int8 not null,
  gateway_count int8 not null,
  gateway_error_count int8 not null,
  cache_hit_count int8 not null,
  cache_miss_count int8 not null,
  delivery_count int8 not null,
  delivery_failed_count int8 not null,
  -- Calls by latency: the bounds are powers of two of a microsecond (`latencyBounds`).
  latency_counts int8[] not null,
  primary key (minute, holder)
);

-- The last tracked block of a network in a minute.
create table head_minute (
  minute timestamptz not null,
  network_id int2 not null references network,
  block_number int8 not null,
  -- How far it was behind the nodes; null where that is not known.
  lag_blocks int8,
  primary key (minute, network_id)
);
