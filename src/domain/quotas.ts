import { OperationError } from '../contract/errors/errors.ts'
import { type QuotaName, shippedQuotas } from '../contract/quotas.ts'
import { addUse, type CountedQuota, type QuotaUse } from '../storage/access/quotas.ts'
import type { Db } from '../storage/pg/database.ts'
import {
  countOpenAlone,
  findGeneration,
  findOpenUse,
  holdOpen,
  type OpenLock,
  type OpenUse,
  recountOpen,
  reserveOpen,
  shareOpen,
} from '../storage/transactions/open-use.ts'
import type { Context } from './context.ts'

type Limits = { quotas?: Context['quotas'] | undefined }

/** The limit of an organization: its own, or that of the configuration. */
export const limitOf = (
  { quotas = shippedQuotas }: Limits,
  quota_name: QuotaName,
  { quota_limit }: Pick<QuotaUse, 'quota_limit'>,
): number => quota_limit ?? quotas[quota_name]

/** Refuses what has made an organization use more than its quota; the transaction is given up by it. */
export function checkUse(
  context: Limits,
  quota_name: QuotaName,
  { use, gained }: { use: QuotaUse; gained: number },
): void {
  const limit = limitOf(context, quota_name, use)
  if (use.used > limit) throw quotaExceeded(quota_name, { limit, used: use.used - gained, gained })
}

/** Counts what is being created, last in its transaction, and refuses it where it is too much. */
export async function takeQuota(
  context: Limits & { db: Db },
  organization_id: string,
  { quota_name, gained = 1 }: { quota_name: CountedQuota; gained?: number },
): Promise<void> {
  const use = await addUse(context.db, organization_id, { quota_name, gained })
  checkUse(context, quota_name, { use, gained })
}

const openQuota = 'QUOTA_OPEN_TRANSACTIONS'

/** A reservation that an exact count has made void before it was used. */
class VoidReservationError extends Error {
  override name = 'VoidReservationError'
}

/** What a transaction that creates does for the quota: locks first, and checks in a later statement. */
export type Admission = { lock: OpenLock; check(trx: Db): Promise<void> }

// A reservation is void where another process counts between it and its use, which is rare.
const attempts = 3

/**
 * Creates a transaction within the quota of open ones. Several are created at once, each with a reservation. `create` takes the
 * lock of its admission with its other locks, and checks before it stores.
 */
export async function withinOpenQuota<result>(
  context: Limits & { db: Db },
  organization_id: string,
  create: (admission: Admission) => Promise<result>,
): Promise<result> {
  for (let attempt = 0; attempt < attempts; attempt++) {
    const reserved = await reserve(context, organization_id)
    const check = async (trx: Db) => {
      if ((await findGeneration(trx, organization_id)) !== reserved)
        throw new VoidReservationError()
    }
    try {
      return await create({ lock: shareOpen(organization_id), check })
    } catch (error) {
      if (!(error instanceof VoidReservationError)) throw error
    }
  }
  // Alone it always comes to an end. Only small quotas are counted often enough for this.
  return await create({
    lock: holdOpen(organization_id),
    check: async (trx) =>
      checkUse(context, openQuota, { use: await countOpenAlone(trx, organization_id), gained: 1 }),
  })
}

/** Refuses early where the last count is recent and leaves no room. It reads one row and reserves nothing. */
export async function checkOpenQuota(
  context: Limits & { db: Db },
  organization_id: string,
): Promise<void> {
  const use = await findOpenUse(context.db, organization_id)
  if (use?.is_recent && use.used >= limitOf(context, openQuota, use))
    throw openExceeded(context, use)
}

async function reserve(context: Limits & { db: Db }, organization_id: string): Promise<number> {
  const { db, quotas = shippedQuotas } = context
  const usual = quotas[openQuota]
  const first = await reserveOpen(db, organization_id, usual)
  if (first !== undefined) return first
  const use = await recountOpen(db, organization_id)
  const second = await reserveOpen(db, organization_id, usual)
  if (second !== undefined) return second
  throw openExceeded(context, use)
}

function openExceeded(context: Limits, use: OpenUse): OperationError {
  const limit = limitOf(context, openQuota, use)
  // Others may have reserved what was left since the count.
  return quotaExceeded(openQuota, { limit, used: Math.max(use.used, limit), gained: 1 })
}

const quotaExceeded = (
  quota_name: QuotaName,
  { limit, used, gained }: { limit: number; used: number; gained: number },
): OperationError =>
  new OperationError('QUOTA_EXCEEDED', {
    detail: `${quota_name} of the organization is ${limit}: ${used} are in use, ${gained} more were asked for.`,
    extra: { quota_name, quota_limit: String(limit), used: String(used) },
  })
