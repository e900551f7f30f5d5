/** The limits of one organization on one chain: -1 is unlimited, 0 is blocked. */
export type RateLimits = {
  per_second_limit: number
  per_hour_limit: number
  per_day_limit: number
  per_month_limit: number
}

/** A stored rate-limit record; the chain `*` stands for every chain without a record of its own. */
export type ChainLimits = RateLimits & { chain: string }

/** The defaults that Portolan ships with. */
export const SHIPPED_LIMITS: RateLimits = {
  per_second_limit: 100,
  per_hour_limit: 100_000,
  per_day_limit: 1_000_000,
  per_month_limit: 20_000_000,
}

/** Where the limits of a chain come from: its record, the organization's `*` record, or neither. */
export type LimitSource = 'chain' | 'organization' | 'default'

/** Which record applies on a chain. */
export const findLimits = <record extends { chain: string }>(
  records: readonly record[],
  chain: string,
): { source: LimitSource; record: record | undefined } => {
  const own = records.find((record) => record.chain === chain)
  if (own) return { source: 'chain', record: own }
  const general = records.find((record) => record.chain === '*')
  return general
    ? { source: 'organization', record: general }
    : { source: 'default', record: undefined }
}

/** The chain's record, else the organization's `*` record, else the configured defaults. */
export const resolveLimits = (
  records: readonly ChainLimits[],
  chain: string,
  defaults: RateLimits = SHIPPED_LIMITS,
): RateLimits =>
  // Without an object of its own: this is done for every call of the gateway.
  records.find((record) => record.chain === chain) ??
  records.find((record) => record.chain === '*') ??
  defaults
