import { OperationError } from '../contract/errors/errors.ts'
import { type QuotaName, shippedQuotas } from '../contract/quotas.ts'
import {
  addUse,
  type CountedQuota,
  countOpenAlone,
  countOpenShared,
  type QuotaUse,
} from '../storage/access/quotas.ts'
import type { Db } from '../storage/pg/database.ts'
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

/** So near to its limit that transactions must be created one after the other. */
class NearQuotaError extends Error {
  override name = 'NearQuotaError'
}

// More than there are connections, each of which may be creating a transaction.
const nearby = 1_000

/**
 * Creates a transaction within the quota of open ones. Far from the limit several are created at once;
 * near to it one at a time, so that each sees those before it. `create` calls `admit` before it stores.
 */
export async function withinOpenQuota<result>(
  context: Limits,
  organization_id: string,
  create: (admit: (trx: Db) => Promise<void>) => Promise<result>,
): Promise<result> {
  const quota_name = 'QUOTA_OPEN_TRANSACTIONS'
  try {
    return await create(async (trx) => {
      const use = await countOpenShared(trx, organization_id)
      if (use.used + nearby >= limitOf(context, quota_name, use)) throw new NearQuotaError()
    })
  } catch (error) {
    if (!(error instanceof NearQuotaError)) throw error
  }
  return await create(async (trx) => {
    const { used, quota_limit } = await countOpenAlone(trx, organization_id)
    checkUse(context, quota_name, { use: { used: used + 1, quota_limit }, gained: 1 })
  })
}

const quotaExceeded = (
  quota_name: QuotaName,
  { limit, used, gained }: { limit: number; used: number; gained: number },
): OperationError =>
  new OperationError('QUOTA_EXCEEDED', {
    detail: `${quota_name} of the organization is ${limit}: ${used} are in use, ${gained} more were asked for.`,
    extra: { quota_name, quota_limit: String(limit), used: String(used) },
  })
