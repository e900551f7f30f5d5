import { createHash, randomBytes } from 'node:crypto'
import type { DemoWallet, DemoWallets } from './demo.ts'
import { limits, type SpareAdministration } from './example-administration.ts'
import { type ExampleMaterial, exampleServers, type SpareWallet } from './example-material.ts'

/** Requests by service and operation, as `c/GetWallet`. */
export type Examples = Readonly<Record<string, object>>

/**
 * Requests that succeed on this demo, for the API reference. Removals name what is not there, so that nothing
 * of the demo gets lost.
 */
export function exampleRequests(
  wallets: DemoWallets,
  organization_id: string | undefined,
  material: ExampleMaterial,
): Examples {
  const examples: Record<string, object> = {}
  const add = (service: string, requests: Record<string, object>) => {
    for (const [name, request] of Object.entries(requests)) examples[`${service}/${name}`] = request
  }
  for (const [service, wallet] of Object.entries(wallets)) {
    add(service, walletRequests(service, wallet))
    const spare = material.spare[service as keyof DemoWallets]
    if (spare) add(service, spareRequests(spare))
    const webhook_history_id = material.webhook_history_ids[service as keyof DemoWallets]
    if (webhook_history_id) add(service, { ListWebhookAttempts: { webhook_history_id } })
  }
  if (wallets.c) add('c', contractRequests(wallets.c, material))
  if (organization_id !== undefined) add('admin', adminRequests(organization_id))
  if (material.administration) add('admin', spareAdministration(material.administration))
  if (material.query) add('q', queryRequests(material.query))
  return examples
}

// Short answers: the reference shows them on one screen.
const page_size = 2

function walletRequests(service: string, wallet: DemoWallet): Record<string, object> {
  const { wallet_id, address, webhook_id } = wallet
  const asset_type = `ASSET_TYPE_${service.toUpperCase()}`
  const own = (number: number) => accountOf(service, number)
  return {
    RegisterWallet: { name: 'My wallet' },
    GetWallet: { wallet_id },
    ListWallets: { page_size },
    RemoveWallet: { wallet_id: unknownId(service, 'wallet') },
    ListAddresses: { wallet_id, page_size },
    GetAddress: { address },
    RegisterAddress: { wallet_id, address: own(1) },
    BatchRegisterAddresses: { wallet_id, addresses: [own(2), own(3)] },
    RemoveAddress: { wallet_id, address: own(1) },
    BatchRemoveAddresses: { wallet_id, addresses: [own(2), own(3)] },
    ImportAsset: { address, asset_type },
    RemoveAsset: { wallet_id, asset_type, token_address: unknownToken(service) },
    ListAssets: { wallet_id, asset_type, page_size },
    ListBalanceHistory: { wallet_id, asset_type, page_size },
    RefreshAssetBalances: { wallet_id, asset_type },
    ListTransfers: { wallet_id, page_size },
    UpdateConfirmation: { wallet_id, confirmation: 1 },
    ListWebhooks: { wallet_id, page_size },
    RemoveWebhook: { webhook_id: unknownId(service, 'webhook') },
    RegisterWebhookHeader: { webhook_id, header_key: 'x-tenant', header_value: 'demo' },
    ListWebhookHeaders: { webhook_id },
    RemoveWebhookHeader: { webhook_header_id: unknownId(service, 'webhook header') },
    ListWebhookHistories: { webhook_id, page_size },
    GetWebhookSigningSecret: { webhook_id },
    EnableWebhook: { webhook_id },
    SendTestWebhook: { webhook_id },
    RetryWebhookHistory: { webhook_id },
    ListSinks: {},
    RemoveSink: { sink_id: unknownId(service, 'sink') },
    CreateStreamToken: {},
  }
}

/** What would disturb the demo is done to a wallet and a webhook that it does not use. */
const spareRequests = (spare: SpareWallet): Record<string, object> => ({
  // Its endpoint is the demo's own: an example must not make the demo call other hosts.
  RegisterWebhook: {
    wallet_id: spare.wallet_id,
    webhook_endpoint: spare.webhook_endpoint,
    confirmation: 1,
  },
  RenameWallet: { wallet_id: spare.wallet_id, name: 'Example wallet' },
  UpdateWebhook: { webhook_id: spare.webhook_id, confirmation: 2 },
  DisableWebhook: { webhook_id: spare.webhook_id },
  RotateWebhookSigningSecret: { webhook_id: spare.webhook_id },
  RegisterSink: {
    ...{ sink_type: 'SINK_TYPE_NATS', servers: exampleServers, tls: false, confirmation: 1 },
  },
  UpdateSink: { sink_id: spare.sink_id, servers: exampleServers },
  EnableSink: { sink_id: spare.sink_id },
  DisableSink: { sink_id: spare.sink_id },
})

function contractRequests(
  { wallet_id, address }: DemoWallet,
  { contracts, payment }: ExampleMaterial,
): Record<string, object> {
  const to = accountOf('c', 1)
  const contract_type = 'CONTRACT_TYPE_ERC20'
  return {
    ListContracts: {},
    RemoveContract: { contract_address: accountOf('c', 4) },
    CreateTransaction: { wallet_id, from: address, to, value: '1' },
    ListTransactions: { wallet_id, page_size },
    ...(contracts && {
      RegisterContract: { contract_address: contracts.erc20, contract_type },
      CreateTokenTransaction: {
        wallet_id,
        contract_type,
        from: address,
        to,
        token_payload: { erc20: { contract_address: contracts.erc20, value: '1' } },
        // Without it the wallet would need a balance.
        gas: '100000',
      },
    }),
    ...(payment && paymentRequests(payment)),
  }
}

function paymentRequests(payment: NonNullable<ExampleMaterial['payment']>): Record<string, object> {
  const { transaction_id, signature, canceled_id } = payment
  return {
    GetTransaction: { transaction_id },
    GetTransactionMessageToSign: { transaction_id },
    SubmitTransactionSignature: { transaction_id, signature },
    SendTransaction: { transaction_id },
    CancelTransaction: { transaction_id: canceled_id },
  }
}

function queryRequests(query: NonNullable<ExampleMaterial['query']>): Record<string, object> {
  const { transaction_hash, outer_hash, pending_hash, pending_from } = query
  return {
    GetBlock: { block_number: 1 },
    GetTransaction: { transaction_hash },
    GetTransactionReceipt: { transaction_hash },
    ListInternalTransactions: { transaction_hash: outer_hash },
    ListLogs: { transaction_hash },
    ListTransactions: { transaction_hashes: [transaction_hash] },
    GetPendingTransaction: { transaction_hash: pending_hash },
    ListPendingTransactions: { from: pending_from },
  }
}

const adminRequests = (organization_id: string): Record<string, object> => ({
  GetOrganizationByDomain: { domain: 'demo' },
  // A domain is taken once: each document names another.
  CreateOrganization: {
    name: 'Example',
    domain: `example-${randomBytes(4).toString('hex')}`,
  },
  ListOrganizations: { page_size },
  ListCredentials: { organization_id, page_size },
  CreateCredential: { organization_id, name: 'My key' },
  ListEffectiveRateLimits: { organization_id },
  GetUsage: { organization_id },
  RenameOrganization: { organization_id, name: 'Demo' },
  EnableOrganization: { organization_id },
  ListAuditEvents: { organization_id, result: 'AUDIT_RESULT_SUCCEEDED' },
  GetCurrentCredential: {},
  ListChains: {},
  ListNodes: {},
  ListMethodUsage: { organization_id, per_key: true },
  ListWebSocketClients: {},
  ListProblems: {},
  ListMetrics: {},
  ListSearchResults: { query: 'demo' },
  CreateStreamToken: {},
})

/** What would disturb the demo is done to organizations and credentials that it does not use. */
const spareAdministration = ({
  limited_organization_id: organization_id,
  disabled_organization_id,
  deleted,
  erased_organization_id,
  credential_ids,
  deleted_pair,
}: SpareAdministration): Record<string, object> => ({
  GetRateLimit: { organization_id, chain: 'admin' },
  SetRateLimit: { organization_id, chain: 'admin', ...limits },
  SetQuota: { organization_id, quota_name: 'QUOTA_WEBHOOKS', quota_limit: 20_000 },
  DeleteRateLimit: { organization_id, chain: '*' },
  ListRateLimits: { organization_id },
  DisableOrganization: { organization_id: disabled_organization_id },
  DeleteOrganization: deleted,
  GetOrganizationDeletion: { organization_id: erased_organization_id },
  UpdateCredential: {
    ...{ credential_id: credential_ids.update, name: 'Example to update' },
    ...{ scopes: ['c:read', 'gateway:c/mainnet:read'] },
    allowed_client_networks: ['127.0.0.0/8', '::1/128'],
  },
  RotateCredential: { credential_id: credential_ids.rotate, overlap_seconds: 3_600 },
  RevokeCredential: { credential_id: credential_ids.revoke },
  DeleteCredential: { api_key: deleted_pair.api_key, api_secret: deleted_pair.api_secret },
})

const digestOf = (text: string): string =>
  createHash('sha256').update(`portolan example ${text}`).digest('hex')

/** An account without an owner; every variant accepts the form of EVM. */
const accountOf = (service: string, number: number): string =>
  `0x${digestOf(`${service} ${number}`).slice(0, 40)}`

/** A token that does not exist. */
const unknownToken = (service: string): string => {
  const hex = digestOf(`${service} token`)
  return service === 's' ? `0x${hex}::example::EXAMPLE` : `0:${hex}`
}

/** A UUID that names nothing. */
function unknownId(service: string, kind: string): string {
  const hex = digestOf(`${service} ${kind}`)
  return [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `8${hex.slice(13, 16)}`,
    `8${hex.slice(17, 20)}`,
    hex.slice(20, 32),
  ].join('-')
}
