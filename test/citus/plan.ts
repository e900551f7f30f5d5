// How the tables would be placed on Citus. docs/scale-database.md has the same table, and tests compare both with the
// schema and with the statements of a running service.

/** Where the rows of a table are: on the shard of their organization, on every machine, or on the coordinator. */
export type Placement = 'organization_id' | 'reference' | 'coordinator'

/** Every table with its placement. */
export const placements: Readonly<Record<string, Placement>> = {
  // Rows of an organization, on one shard together.
  balance: 'organization_id',
  balance_change: 'organization_id',
  balance_difference: 'organization_id',
  balance_pending: 'organization_id',
  contract: 'organization_id',
  delivery: 'organization_id',
  delivery_attempt: 'organization_id',
  delivery_queue: 'organization_id',
  idempotency_key: 'organization_id',
  managed_transaction: 'organization_id',
  method_usage: 'organization_id',
  notification_event: 'organization_id',
  notification_turn: 'organization_id',
  organization_write: 'organization_id',
  quota: 'organization_id',
  quota_use: 'organization_id',
  rate_limit: 'organization_id',
  rate_usage: 'organization_id',
  sink: 'organization_id',
  state_event: 'organization_id',
  token_import: 'organization_id',
  token_rule: 'organization_id',
  transfer: 'organization_id',
  wallet: 'organization_id',
  wallet_address: 'organization_id',
  webhook: 'organization_id',
  webhook_header: 'organization_id',
  // Small, read with every row of an organization, changed rarely.
  asset: 'reference',
  network: 'reference',
  organization: 'reference',
  // One row or one sequence for the installation or for a network: they order work, and would not gain from shards.
  audit_chain: 'coordinator',
  audit_event: 'coordinator',
  audit_pending: 'coordinator',
  balance_backlog: 'coordinator',
  balance_reading: 'coordinator',
  balance_reopening: 'coordinator',
  balance_round: 'coordinator',
  block: 'coordinator',
  credential: 'coordinator',
  head_minute: 'coordinator',
  installation_key: 'coordinator',
  job: 'coordinator',
  lease: 'coordinator',
  metric_minute: 'coordinator',
  nonce_memory: 'coordinator',
  operational_announcement: 'coordinator',
  operational_event: 'coordinator',
  organization_deletion: 'coordinator',
  pending_transaction: 'coordinator',
  request_nonce: 'coordinator',
  tracker_cursor: 'coordinator',
  tracker_gap: 'coordinator',
}
