import Type from 'typebox'
import { type Quotas, shippedQuotas } from '../../../contract/quotas.ts'

const window = (name: string, value: number) =>
  Type.Integer({
    description: `Calls per ${name}; -1 means unlimited, 0 means blocked.`,
    default: value,
    minimum: -1,
    maximum: Number.MAX_SAFE_INTEGER,
  })

/** Default rate limits of an organization on a chain. */
export const limitsSection = Type.Object(
  {
    per_second_limit: window('second', 100),
    per_hour_limit: window('hour', 100_000),
    per_day_limit: window('day', 1_000_000),
    per_month_limit: window('month', 20_000_000),
    replicas: Type.Integer({
      description:
        'Number of processes that serve requests. Without Redis each admits its share of a limit.',
      default: 1,
      minimum: 1,
      maximum: 10_000,
    }),
  },
  {
    description: 'Default rate limits of an organization on a chain.',
  },
)

const quota = (what: string, value: number) =>
  Type.Integer({
    description: `${what} of one organization, over all chains. \`SetQuota\` gives an organization another number.`,
    default: value,
    minimum: 0,
    maximum: Number.MAX_SAFE_INTEGER,
  })

/** Default quotas of an organization. */
export const quotasSection = Type.Object(
  {
    wallets: quota('Wallets', shippedQuotas.QUOTA_WALLETS),
    addresses: quota('Addresses', shippedQuotas.QUOTA_ADDRESSES),
    webhooks: quota('Webhooks', shippedQuotas.QUOTA_WEBHOOKS),
    webhook_headers: quota('Webhook headers', shippedQuotas.QUOTA_WEBHOOK_HEADERS),
    contracts: quota('Contracts', shippedQuotas.QUOTA_CONTRACTS),
    open_transactions: quota(
      'Managed transactions that are neither canceled nor decided',
      shippedQuotas.QUOTA_OPEN_TRANSACTIONS,
    ),
  },
  { description: 'Default quotas of an organization.' },
)

/** The configured quotas by the names that operations use. */
export const toQuotas = (section: Type.Static<typeof quotasSection>): Quotas => ({
  QUOTA_WALLETS: section.wallets,
  QUOTA_ADDRESSES: section.addresses,
  QUOTA_WEBHOOKS: section.webhooks,
  QUOTA_WEBHOOK_HEADERS: section.webhook_headers,
  QUOTA_CONTRACTS: section.contracts,
  QUOTA_OPEN_TRANSACTIONS: section.open_transactions,
})
