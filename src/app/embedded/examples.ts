import { createHash } from 'node:crypto'
import type { DemoWallet, DemoWallets } from './demo.ts'

/** Requests by service and operation, as `c/GetWallet`. */
export type Examples = Readonly<Record<string, object>>

/**
 * Requests that succeed on this demo, for the API reference: they name its own wallets and webhooks. What
 * removes something, or needs something that does not last, has none.
 */
export function exampleRequests(
  wallets: DemoWallets,
  organization_id: string | undefined,
): Examples {
  const examples: Record<string, object> = {}
  const add = (service: string, requests: Record<string, object>) => {
    for (const [name, request] of Object.entries(requests)) examples[`${service}/${name}`] = request
  }
  for (const [service, wallet] of Object.entries(wallets))
    add(service, walletRequests(service, wallet))
  if (wallets.c) add('c', contractRequests(wallets.c))
  if (organization_id !== undefined) add('admin', adminRequests(organization_id))
  add('q', { GetBlock: { block_number: 1 } })
  return examples
}

function walletRequests(service: string, wallet: DemoWallet): Record<string, object> {
  const { wallet_id, address, webhook_id } = wallet
  const asset_type = `ASSET_TYPE_${service.toUpperCase()}`
  const own = (number: number) => accountOf(service, number)
  return {
    RegisterWallet: { name: 'My wallet' },
    GetWallet: { wallet_id },
    ListWallets: { page_size: 10 },
    ListAddresses: { wallet_id, page_size: 10 },
    GetAddress: { address },
    RegisterAddress: { wallet_id, address: own(1) },
    BatchRegisterAddresses: { wallet_id, addresses: [own(2), own(3)] },
    ImportAsset: { address, asset_type },
    ListAssets: { wallet_id, asset_type },
    RefreshAssetBalances: { wallet_id, asset_type },
    ListTransfers: { wallet_id, page_size: 10 },
    UpdateConfirmation: { wallet_id, confirmation: 1 },
    RegisterWebhook: {
      wallet_id,
      webhook_endpoint: 'https://example.com/webhook',
      confirmation: 1,
    },
    ListWebhooks: { wallet_id },
    RegisterWebhookHeader: { webhook_id, header_key: 'x-tenant', header_value: 'demo' },
    ListWebhookHeaders: { webhook_id },
    ListWebhookHistories: { webhook_id, page_size: 10 },
    GetWebhookSigningSecret: { webhook_id },
    EnableWebhook: { webhook_id },
    SendTestWebhook: { webhook_id },
    RetryWebhookHistory: { webhook_id },
  }
}

const contractRequests = ({ wallet_id, address }: DemoWallet): Record<string, object> => ({
  ListContracts: {},
  CreateTransaction: { wallet_id, from: address, to: accountOf('c', 1), value: '1' },
  ListTransactions: { wallet_id, page_size: 10 },
})

const adminRequests = (organization_id: string): Record<string, object> => ({
  GetOrganizationByDomain: { domain: 'demo' },
  ListOrganizations: { page_size: 10 },
  ListCredentials: { organization_id },
  CreateCredential: { organization_id, name: 'My key' },
  ListRateLimits: { organization_id },
  ListEffectiveRateLimits: { organization_id },
  GetUsage: { organization_id },
})

/** An account of nobody; every variant takes the form of EVM. */
const accountOf = (service: string, number: number): string =>
  `0x${createHash('sha256').update(`portolan example ${service} ${number}`).digest('hex').slice(0, 40)}`
