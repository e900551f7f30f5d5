-- The nodes and the gateway as each process sees them. A process writes its row when one of them asks; it is of no use
-- later.
create unlogged table gateway_report (
  holder uuid primary key,
  report_time timestamptz not null,
  nodes jsonb not null,
  gateways jsonb not null
);
