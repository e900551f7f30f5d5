/** What an organization can have a limited number of, and how many unless the configuration says otherwise. */
export const shippedQuotas = {
  QUOTA_WALLETS: 100_000,
  QUOTA_ADDRESSES: 10_000_000,
  QUOTA_WEBHOOKS: 10_000,
  QUOTA_WEBHOOK_HEADERS: 50_000,
  QUOTA_CONTRACTS: 10_000,
  QUOTA_OPEN_TRANSACTIONS: 100_000,
} as const

/** The name of a quota. */
export type QuotaName = keyof typeof shippedQuotas

/** The names of all quotas. */
export const quotaNames = Object.keys(shippedQuotas) as [QuotaName, ...QuotaName[]]

/** A number for each quota. */
export type Quotas = Readonly<Record<QuotaName, number>>
