import type { Catalogue } from '../../contract/catalogue.ts'
import { OperationError } from '../../contract/errors.ts'
import { toTimestamp } from '../../lib/clock.ts'
import type { RateLimitRow } from '../../storage/access-tables.ts'
import {
  deleteRateLimits,
  findRateLimit,
  listRateLimits,
  upsertRateLimit,
} from '../../storage/rate-limits.ts'
import { limitsChanged } from '../access/limit-records.ts'
import type { Handler } from '../context.ts'
import { getOrganization } from './organizations.ts'

type Admin = Catalogue<'admin'>
type HandlerOf<name extends keyof Admin> = Handler<Admin[name]['request'], Admin[name]['response']>

/** Reads one record; without a chain, the organization's default. */
export const GetRateLimit: HandlerOf<'GetRateLimit'> = async (context, request) => {
  const { organization_id } = await getOrganization(context, request.organization_id)
  const row = await findRateLimit(context.db, organization_id, request.chain ?? '*')
  if (!row) throw new OperationError('RATE_LIMIT_NOT_FOUND')
  return present(row)
}

/** Lists all records, or those of one chain. */
export const ListRateLimits: HandlerOf<'ListRateLimits'> = async (context, request) => {
  const { organization_id } = await getOrganization(context, request.organization_id)
  const rows = await listRateLimits(context.db, organization_id, request.chain)
  return { data: rows.map(present) }
}

/** Creates or replaces one record. */
export const SetRateLimit: HandlerOf<'SetRateLimit'> = async (context, request) => {
  const { organization_id } = await getOrganization(context, request.organization_id)
  const { per_second_limit, per_hour_limit, per_day_limit, per_month_limit } = request
  const row = await upsertRateLimit(context.db, {
    organization_id,
    chain: request.chain ?? '*',
    per_second_limit,
    per_hour_limit,
    per_day_limit,
    per_month_limit,
    update_time: new Date(context.clock.now()),
  })
  if (!row) throw new OperationError('ORGANIZATION_NOT_FOUND')
  await limitsChanged(context.db, organization_id)
  return present(row)
}

/** Deletes one record, or every record of the organization. */
export const DeleteRateLimit: HandlerOf<'DeleteRateLimit'> = async (context, request) => {
  const { organization_id } = await getOrganization(context, request.organization_id)
  const count = await deleteRateLimits(context.db, organization_id, request.chain)
  if (count === 0) throw new OperationError('RATE_LIMIT_NOT_FOUND')
  await limitsChanged(context.db, organization_id)
  return {}
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
