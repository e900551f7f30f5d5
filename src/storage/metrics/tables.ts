// What processes report, by minute and holder. Rows are added by each process for itself, so that no counter is shared and
// no lock is needed; readers add them up. The janitor removes old minutes.

import {
  int2,
  int4,
  int8,
  int8s,
  jsonOf,
  nullable,
  text,
  timestamptz,
  uuid,
} from '../pg/columns.ts'

/** The tables of 0011-metrics.sql, and what processes report to each other. */
export const metricTables = {
  metric_minute: {
    minute: timestamptz,
    holder: uuid,
    request_count: int8,
    error_count: int8,
    refused_count: int8,
    gateway_count: int8,
    gateway_error_count: int8,
    cache_hit_count: int8,
    cache_miss_count: int8,
    delivery_count: int8,
    delivery_failed_count: int8,
    // Counts by bucket and not quantiles: quantiles of several processes cannot be combined.
    latency_counts: int8s,
  },
  head_minute: {
    minute: timestamptz,
    network_id: int2,
    block_number: int8,
    lag_blocks: nullable(int8),
  },
  // What each process last reported of itself, replaced as a whole. Rows of a holder that stopped reporting are ignored.
  websocket_client: {
    holder: uuid,
    client_number: int4,
    report_time: timestamptz,
    organization_id: uuid,
    credential_id: uuid,
    chain: text,
    network: text,
    client: text,
    open_time: timestamptz,
    subscriptions: jsonOf<Record<string, number>>(),
    buffered_bytes: int8,
  },
  gateway_report: {
    holder: uuid,
    report_time: timestamptz,
    nodes: jsonOf<readonly object[]>(),
    gateways: jsonOf<readonly object[]>(),
  },
}
