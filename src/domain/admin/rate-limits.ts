// The records of rate limits, and which of them applies: that of the chain, else the organization's `*`, else the default of
// the configuration. Every change is announced to the other processes; those cache records for a bounded time.

import { OperationError } from '../../contract/errors/errors.ts'
import { invalidRequest } from '../../contract/validate.ts'
import { services } from '../../contract/variant.ts'
import { toTimestamp } from '../../lib/clock.ts'
import { findNearest } from '../../lib/nearest.ts'
import {
  deleteRateLimits,
  findRateLimit,
  listRateLimits,
  upsertRateLimit,
} from '../../storage/access/rate-limits.ts'
import { loadRateUsage } from '../../storage/access/rate-usage.ts'
import type { RateLimitRow } from '../../storage/access/tables.ts'
import { limitsChanged } from '../access/limit-records.ts'
import type { AdminHandler, Context } from '../context.ts'
import { findLimits, SHIPPED_LIMITS } from '../limits/decision.ts'
import { getOrganization } from './organizations.ts'

/** Reads one record; without a chain, the organization's default. */
export const GetRateLimit: AdminHandler<'GetRateLimit'> = async (context, request) => {
  const { organization_id } = await getOrganization(context, request.organization_id)
  const row = await findRateLimit(context.db, organization_id, request.chain ?? '*')
  if (!row) throw new OperationError('RATE_LIMIT_NOT_FOUND')
  return present(row)
}

/** Lists all records, or those of one chain. */
export const ListRateLimits: AdminHandler<'ListRateLimits'> = async (context, request) => {
  const { organization_id } = await getOrganization(context, request.organization_id)
  const rows = await listRateLimits(context.db, organization_id, request.chain)
  return { data: rows.map(present) }
}

/** Creates or replaces one record. */
export const SetRateLimit: AdminHandler<'SetRateLimit'> = async (context, request) => {
  checkChain(context, request.chain)
  const { organization_id } = await getOrganization(context, request.organization_id)
  const { per_second_limit, per_hour_limit, per_day_limit, per_month_limit } = request
  // Whole records: a window that is left out of a change would otherwise mean two things.
  return await context.db.transaction().execute(async (trx) => {
    const row = await upsertRateLimit(trx, {
      organization_id,
      chain: request.chain ?? '*',
      per_second_limit,
      per_hour_limit,
      per_day_limit,
      per_month_limit,
      update_time: new Date(context.clock.now()),
    })
    if (!row) throw new OperationError('ORGANIZATION_NOT_FOUND')
    await limitsChanged(trx, organization_id)
    return present(row)
  })
}

/** Deletes one record, or every record of the organization. */
export const DeleteRateLimit: AdminHandler<'DeleteRateLimit'> = async (context, request) => {
  const { organization_id } = await getOrganization(context, request.organization_id)
  await context.db.transaction().execute(async (trx) => {
    const count = await deleteRateLimits(trx, organization_id, request.chain)
    if (count === 0) throw new OperationError('RATE_LIMIT_NOT_FOUND')
    await limitsChanged(trx, organization_id)
  })
  return {}
}

/** Lists what applies on each chain, and what is used of it. */
export const ListEffectiveRateLimits: AdminHandler<'ListEffectiveRateLimits'> = async (
  context,
  request,
) => {
  checkChain(context, request.chain)
  const { organization_id } = await getOrganization(context, request.organization_id)
  const { db, clock } = context
  // Without limits in the context (a command on a stopped installation) the shipped defaults are
  // shown.
  const { defaults = SHIPPED_LIMITS, chains = ['admin'] } = context.limits ?? {}
  const records = await listRateLimits(db, organization_id)
  const now = new Date(clock.now())
  const wanted = chains.filter((chain) => (request.chain ?? chain) === chain)
  const effective_rate_limits = await Promise.all(
    wanted.map(async (chain) => {
      const { source, record } = findLimits(records, chain)
      const { per_second_limit, per_hour_limit, per_day_limit, per_month_limit } =
        record ?? defaults
      const limits = { per_second_limit, per_hour_limit, per_day_limit, per_month_limit }
      const used = await loadRateUsage(db, organization_id, chain, now)
      return {
        chain,
        source: sourceNames[source],
        // A limit of zero means blocked, not unlimited.
        blocked: Object.values(limits).includes(0),
        ...limits,
        hour_used: used.hour,
        day_used: used.day,
        month_used: used.month,
      }
    }),
  )
  return { effective_rate_limits }
}

const sourceNames = {
  chain: 'RATE_LIMIT_SOURCE_CHAIN',
  organization: 'RATE_LIMIT_SOURCE_ORGANIZATION',
  default: 'RATE_LIMIT_SOURCE_DEFAULT',
} as const

/** A record of a chain that nothing counts would never apply; the mistake would go unnoticed. */
function checkChain({ limits }: Context, chain = '*'): void {
  const known = new Set(['*', ...Object.keys(services), ...(limits?.chains ?? [])])
  if (known.has(chain)) return
  const nearest = findNearest(chain, known)
  const meant = nearest ? `Did you mean ${nearest}?` : `Must be one of ${[...known].join(', ')}.`
  throw invalidRequest([
    { field: 'chain', reason: 'NOT_ALLOWED', detail: `No such chain. ${meant}` },
  ])
}

const present = (row: RateLimitRow) => ({
  organization_id: row.organization_id,
  ratelimit_info: {
    chain: row.chain,
    per_second_limit: row.per_second_limit,
    per_hour_limit: row.per_hour_limit,
    per_day_limit: row.per_day_limit,
    per_month_limit: row.per_month_limit,
  },
  create_time: toTimestamp(row.create_time),
  update_time: toTimestamp(row.update_time),
})
