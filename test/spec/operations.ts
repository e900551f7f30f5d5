/**
 * Tables 4.1 to 4.4 of the specification, transcribed manually. One block per operation: its name and
 * the variants that have it (Q chain query, A administration), the request fields, and after `->` the
 * fields of the 200 answer. `req` is required, `in XY` limits a field to variants, a capital name is
 * a record of records.ts, `...Name` puts the fields of a record at the top level.
 */
export const operations = `
GetBlock (Q)
  block_number int64 req
  -> block Block
GetPendingTransaction (Q)
  transaction_hash string req
  -> pending_transaction PendingTransaction
GetTransaction (Q)
  transaction_hash string req
  -> transaction Transaction
GetTransactionReceipt (Q)
  transaction_hash string req
  -> transaction_receipt TransactionReceipt
ListInternalTransactions (Q)
  transaction_hash string req
  -> internal_transactions InternalTransaction[]
ListLogs (Q)
  transaction_hash string req
  -> logs Log[]
ListPendingTransactions (Q)
  from evm req
  nonce int64
  -> pending_transactions PendingTransaction[]
ListTransactions (Q)
  transaction_hashes string[]
  -> transactions Transaction[]

DeleteCredential (A)
  api_key string req
  api_secret string req
DeleteRateLimit (A)
  organization_id string req
  chain string
GetOrganizationByDomain (A)
  domain domain req
  -> organization Organization
GetRateLimit (A)
  organization_id string req
  chain string
  -> ...RateLimit
ListRateLimits (A)
  organization_id string req
  chain string
  -> data RateLimit[]

BatchRegisterAddresses (TSPC)
  wallet_id string req
  addresses evm[] 1..1000
BatchRemoveAddresses (TSPC)
  wallet_id string req
  addresses evm[] 1..1000
  remove_all boolean
RegisterAddress (TSPC)
  wallet_id string req
  address evm req
  import_asset boolean default=false in TSP
RemoveAddress (TSPC)
  wallet_id string req
  address evm req
GetWallet (TSPC)
  wallet_id string
  address evm
  at least one: wallet_id address
  -> wallet Wallet
ListWallets (TSPC)
  page_size int64 max=100 default=10
  page_token string
  -> wallets Wallet[]
  -> pagination Pagination
RegisterWallet (TSPC)
  name string req 1..50
  address evm
  import_asset boolean default=false in TSP
  confirmation int64 default=10 in SC
  -> wallet_id string
ImportAsset (TS)
  address string
  asset_type asset_type req
  token_address string
  token_account_address string
ImportAsset (P)
  address evm req
  asset_type asset_type req
ListAssets (TSPC)
  wallet_id string
  address evm
  asset_type asset_type req
  is_aggregated boolean
  page_size int64 max=100 default=10
  page_token string
  exclude_zero_balance boolean default=false
  token_address string in TS
  contract_address evm in C
  -> assets Asset[]
  -> pagination Pagination
RefreshAssetBalances (TS)
  wallet_id string
  address string
  asset_type asset_type req
  at least one: wallet_id address
RefreshAssetBalances (PC)
  wallet_id string
  address evm
  asset_type asset_type req
  at least one: wallet_id address
ListTransfers (TPC)
  address evm
  start_time int64
  end_time int64
  page_size int64 max=100 default=10
  page_token string
  wallet_id string
  transaction_hash string
  at least one: wallet_id address transaction_hash
  -> transfers Transfer[]
  -> pagination Pagination
ListTransfers (S)
  address evm
  start_time int64
  end_time int64
  page_size int64 max=100 default=10
  page_token string
  wallet_id string
  transaction_digest string
  at least one: wallet_id address transaction_digest
  -> transfers Transfer[]
  -> pagination Pagination
ListWebhookHeaders (TSPC)
  webhook_id string
  -> webhook_headers WebhookHeader[]
ListWebhookHistories (TSPC)
  webhook_id string
  start_time int64
  end_time int64
  page_size int64 max=100 default=10
  page_token string
  -> webhook_histories WebhookHistory[]
  -> pagination Pagination
RegisterWebhook (TSPC)
  wallet_id string
  webhook_endpoint string req
  confirmation int64 req
  -> webhook_id string
RegisterWebhookHeader (TSPC)
  webhook_id string
  header_key string req max=1000
  header_value string req max=1000
  -> webhook_header_id string
RemoveWebhook (TSPC)
  webhook_id string req
RemoveWebhookHeader (TSPC)
  webhook_header_id string req
GetAddress (TS)
  address evm req
  -> ...Address
UpdateConfirmation (SC)
  wallet_id string req
  confirmation int64 req default=10

CreateTransaction (C)
  wallet_id string req
  from evm req
  to evm req
  value decimal req
  gas decimal
  gas_price decimal
  data string
  nonce int64
  transaction_id string
  -> transaction ManagedTransaction
CreateTokenTransaction (C)
  wallet_id string req
  contract_type sendable_contract_type req
  from evm req
  to evm req
  gas decimal
  gas_price decimal
  nonce int64
  transaction_id string
  token_payload object
  token_payload.erc20 object
  token_payload.erc20.contract_address string req
  token_payload.erc20.value string req
  token_payload.erc721 object
  token_payload.erc721.contract_address string req
  token_payload.erc721.token_id string req
  token_payload.erc1155 object
  token_payload.erc1155.contract_address string req
  token_payload.erc1155.token_id string req
  token_payload.erc1155.value string req
  -> transaction ManagedTransaction
GetTransaction (C)
  transaction_id string
  transaction_hash string
  at least one: transaction_id transaction_hash
  -> transaction ManagedTransaction
GetTransactionMessageToSign (C)
  transaction_id string req
  -> transaction_message_to_sign string
ListTransactions (C)
  wallet_id string
  address evm
  page_size int64 max=100 default=10
  page_token string
  at least one: wallet_id address
  -> transactions ManagedTransaction[]
  -> pagination Pagination
SendTransaction (C)
  transaction_id string req
  -> transaction ManagedTransaction
SubmitTransactionSignature (C)
  transaction_id string req
  signature string req
CancelTransaction (C)
  transaction_id string req
ListContracts (C)
  -> contracts Contract[]
RegisterContract (C)
  contract_address evm req
  contract_type contract_type req
RemoveContract (C)
  contract_address evm req
`

/** How many operations each variant has; 95 in all. */
export const operationCounts = { q: 8, admin: 5, t: 18, s: 19, p: 17, c: 28 }
