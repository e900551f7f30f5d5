import { quotaNames } from '../../contract/quotas.ts'
import { listQuotaUses, setQuota } from '../../storage/access/quotas.ts'
import type { AdminHandler, Context } from '../context.ts'
import { limitOf } from '../quotas.ts'
import { getOrganization } from './organizations.ts'

/** Gives an organization a quota of its own; without a limit, that of the configuration. */
export const SetQuota: AdminHandler<'SetQuota'> = async (
  context,
  { quota_name, quota_limit, ...request },
) => {
  const { organization_id } = await getOrganization(context, request.organization_id)
  const update_time = new Date(context.clock.now())
  await setQuota(context.db, { organization_id, quota_name }, { quota_limit, update_time })
  // Read again after the change, so that the answer shows the default where the limit was removed.
  const quotas = await presentQuotas(context, organization_id)
  return { quota: quotas.find((quota) => quota.quota_name === quota_name)! }
}

/** All quotas of an organization, with what it uses of them. */
export async function presentQuotas(context: Context, organization_id: string) {
  const uses = await listQuotaUses(context.db, organization_id)
  return quotaNames.map((quota_name) => {
    const use = uses.get(quota_name) ?? { used: 0, quota_limit: null }
    return {
      quota_name,
      quota_limit: limitOf(context, quota_name, use),
      used: use.used,
      is_default: use.quota_limit === null,
    }
  })
}
