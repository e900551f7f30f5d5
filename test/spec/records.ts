/**
 * The records of section 2 (2.1 to 2.12), transcribed manually; see operations.ts for the notation.
 * The fields of a record are always there, except those marked `opt`.
 */
export const records = `
Organization (A)
  organization_id string
  name string
  domain string
  create_time timestamp
  update_time timestamp
RateLimit (A)
  organization_id string
  ratelimit_info object
  ratelimit_info.chain string
  ratelimit_info.per_second_limit integer
  ratelimit_info.per_hour_limit integer
  ratelimit_info.per_day_limit integer
  ratelimit_info.per_month_limit integer
  create_time timestamp
  update_time timestamp
Wallet (TSPC)
  wallet_id string
  name string
  addresses string[]
  create_time timestamp
  update_time timestamp
  confirmation int64 in SC
  address_mapping object[] in T
  address_mapping[].address string in T
  address_mapping[].user_friendly_address string in T
Address (TS)
  address string
  wallet_id string
  user_friendly_address string in T
Asset (TSPC)
  wallet_id string
  address string
  asset_type asset_type
  balance decimal
  user_friendly_address string in T
  asset_metadata TokenMetadata in C
TokenMetadata (C)
  erc20 object opt
  erc20.contract_address string
  erc20.name string
  erc20.symbol string
  erc20.decimals integer
  erc721 object opt
  erc721.contract_address string
  erc721.name string
  erc721.symbol string
  erc721.token_id string
  erc721.token_uri string
  erc721.token_data string
  erc1155 object opt
  erc1155.contract_address string
  erc1155.token_id string
  erc1155.token_uri string
  erc1155.token_data string
Transfer (T)
  transaction_hash string
  asset_type asset_type
  from string
  to string
  value string
  transaction_fee string
  seq_no string
  workchain string
  shard string
  status string
  from_user_friendly_address string
  to_user_friendly_address string
  message string
  transfer_hash string
  transfer_type string
  bounced string
Transfer (S)
  transaction_digest string
  asset_type asset_type
  from string
  to string
  value string
  status string
Transfer (P)
  transaction_hash string
  asset_type asset_type
  from string
  to string
  value string
  transaction_fee string
  block_height integer
  block_timestamp integer
Transfer (C)
  transaction_hash string
  asset_type asset_type
  nonce string
  from string
  to string
  value string
  transaction_fee string
  transfer_state string
  block_number integer
  block_timestamp integer
  transfer_metadata TokenMetadata
ManagedTransaction (C)
  wallet_id string
  transaction_id string
  transaction_hash string
  transaction_state string
  from string
  to string
  value decimal
  gas decimal
  gas_price decimal
  data string
  nonce decimal
Contract (C)
  contract_address string
  contract_type contract_type
  contract_metadata object|null
WebhookHeader (TSPC)
  webhook_header_id string
  webhook_id string
  header_key string
  header_value string
WebhookHistory (TSPC)
  webhook_history_id string
  webhook_id string
  webhook_status string
  notification_type string
  delivery_count integer
  delivery_time timestamp
  data object
Pagination (TSPC)
  next_page_token string
Block (Q)
  block_hash string
  block_number integer
  difficulty integer
  extra_data string
  gas_limit integer
  gas_used integer
  logs_bloom string
  miner string
  mix_hash string
  nonce string
  parent_hash string
  receipts_root string
  sha3_uncles string
  size integer
  state_root string
  timestamp integer
  transactions_root string
  uncles string[]
PendingTransaction (Q)
  transaction_hash string
  from string
  to string
  gas integer
  gas_price integer
  input string
  nonce integer
  value string
  r string
  s string
  v string
  record_time timestamp
Transaction (Q)
  transaction_hash string
  block_number integer
  block_hash string
  from string
  to string
  gas integer
  gas_price integer
  input string
  nonce integer
  transaction_index integer
  value string
  r string
  s string
  v string
TransactionReceipt (Q)
  transaction_hash string
  block_number integer
  block_hash string
  contract_address string
  cumulative_gas_used integer
  from string
  to string
  gas_used integer
  logs_bloom string
  status integer
  transaction_index integer
  effective_gas_price integer
InternalTransaction (Q)
  transaction_hash string
  from string
  to string
  gas integer
  gas_used integer
  input string
  output string
  call_type string
  trace_index string
  value string
  error string
Log (Q)
  transaction_hash string
  address string
  data string
  topics string[]
  block_number integer
  block_hash string
  transaction_index integer
  log_index integer
  removed boolean
`

/** Asset types (2.7). */
export const assetTypes: Record<string, readonly string[]> = {
  T: ['ASSET_TYPE_T'],
  S: ['ASSET_TYPE_S'],
  P: ['ASSET_TYPE_P'],
  C: ['ASSET_TYPE_C', 'ASSET_TYPE_ERC20', 'ASSET_TYPE_ERC721', 'ASSET_TYPE_ERC1155'],
}

/** Contract types of RegisterContract (2.7). */
export const contractTypes = [
  'CONTRACT_TYPE_ERC20',
  'CONTRACT_TYPE_ERC721',
  'CONTRACT_TYPE_ERC1155',
]

/** Contract types of CreateTokenTransaction (2.7). */
export const sendableContractTypes = ['CONTRACT_TYPE_ERC20', 'CONTRACT_TYPE_ERC721']

/** Values that section 3 shows; the complete lists are not shown. */
export const seenValues = {
  transaction_state: 'TRANSACTION_STATE_CREATED',
  transfer_state: 'TRANSFER_STATE_SUCCESS',
  transfer_type: 'TRANSFER_TYPE_INCOMING',
  webhook_status: 'WEBHOOK_STATUS_COMPLETED',
}

/** Notification types (6.1). */
export const notificationTypesOf = {
  t: 'NOTIFICATION_TYPE_T_TRANSACTION_UPDATED',
  s: 'NOTIFICATION_TYPE_S_TRANSACTION_UPDATED',
  p: 'NOTIFICATION_TYPE_P_TRANSACTION_UPDATED',
  c: 'NOTIFICATION_TYPE_EVM_TRANSACTION_UPDATED',
}

/** The pattern of EVM addresses (section 2). */
export const evmPattern = '^0x[a-f0-9]{40}$'

/** The pattern of domains (2.1). */
export const domainPattern = '^[a-z0-9]+(?:-[a-z0-9]+)*$'
