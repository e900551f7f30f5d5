/** Keys and foreign keys that Citus refuses as they are; docs/scale-database.md says what replaces them. */
export const allowedConstraints = {
  /** Unique indexes without `organization_id`: it goes in front of the columns of each. */
  keys: [
    'balance_change_pkey',
    'balance_difference_pkey',
    'balance_pending_pkey',
    'balance_pkey',
    'delivery_attempt_pkey',
    'delivery_pkey',
    'delivery_queue_pkey',
    'delivery_sequence',
    'idempotency_key_pkey',
    'sink_pkey',
    'token_rule_pkey',
    'transfer_pkey',
    'wallet_pkey',
    'webhook_header_pkey',
    'webhook_pkey',
  ],
  /** Foreign keys without `organization_id`: they get it with the key that they lead to. */
  foreign: [
    'managed_transaction_wallet_id_fkey',
    'token_import_wallet_id_fkey',
    'token_rule_wallet_id_fkey',
    'wallet_address_wallet_id_fkey',
    'webhook_header_webhook_id_fkey',
    'webhook_wallet_id_fkey',
  ],
}

const byParent =
  'names a wallet or a webhook without its organization: the organization becomes a further condition'
const everywhere = 'work of a network or of all couriers: it reads every shard'
const age = 'removes old rows on every shard'

/** What hot statements use a table for without its organization, and why, or what has to change. */
export const allowedStatements: ReadonlyMap<string, string> = new Map([
  ['delete balance', byParent],
  ['delete balance_change', byParent],
  ['delete balance_pending', byParent],
  ['delete delivery', byParent],
  ['delete delivery_queue', byParent],
  ['delete idempotency_key', age],
  ['delete rate_usage', age],
  ['delete sender_nonce', age],
  ['delete token_import', byParent],
  ['delete webhook', byParent],
  ['delete webhook_header', byParent],
  ['refused: ctid', 'the claim of deliveries updates by place (ctid): on Citus it updates by key'],
  ['select balance', `${everywhere}; others: ${byParent}`],
  ['select balance_change', `${everywhere}; others: ${byParent}`],
  ['select balance_pending', everywhere],
  ['select delivery', `${everywhere}; others: ${byParent}`],
  ['select delivery_attempt', byParent],
  ['select delivery_queue', `${everywhere}; others: ${byParent}`],
  ['select idempotency_key', age],
  ['select managed_transaction', everywhere],
  ['select notification_event', everywhere],
  ['select sink', everywhere],
  ['select state_event', everywhere],
  ['select transfer', everywhere],
  ['select wallet', `${everywhere}; others: ${byParent}`],
  ['select wallet_address', everywhere],
  ['select webhook', `${everywhere}; others: ${byParent}`],
  ['select webhook_header', byParent],
  ['update balance', byParent],
  ['update balance_change', byParent],
  ['update balance_pending', byParent],
  ['update delivery', byParent],
  ['update delivery_queue', byParent],
  ['update sink', everywhere],
  ['update wallet', byParent],
  ['update webhook', byParent],
])
