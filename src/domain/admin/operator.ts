import { OperationError } from '../../contract/errors/errors.ts'
import { isUuid } from '../../lib/ids.ts'
import { findCredentialById, findCredentialByKeyHash } from '../../storage/access/credentials.ts'
import { findDeletion } from '../../storage/access/organization-erasing.ts'
import {
  findOrganizationByDomain,
  setOrganizationDisabled,
} from '../../storage/access/organizations.ts'
import type { OrganizationRow } from '../../storage/access/tables.ts'
import { notifyChange } from '../../storage/pg/changes.ts'
import { courierTopic } from '../../storage/webhooks/notifications.ts'
import { announced } from '../access/announced.ts'
import { hashKey } from '../access/credential-keys.ts'
import type { Context, Installation } from '../context.ts'
import { removeCredential } from './credentials.ts'
import { getOrganization } from './organizations.ts'

// What an operator may do at the machine itself, beyond what the operations offer.

/** The organization with this domain or id. */
export async function findByDomainOrId(context: Context, text: string): Promise<OrganizationRow> {
  if (isUuid(text)) return await getOrganization(context, text)
  const row = await findOrganizationByDomain(context.db, text)
  if (row) return row
  throw new OperationError('ORGANIZATION_NOT_FOUND', {
    detail: `There is no organization with the domain "${text}".`,
  })
}

/** Refuses all credentials of an organization from now on, or takes them again. */
export async function setEnabled(
  installation: Installation,
  organization_id: string,
  enabled: boolean,
): Promise<OrganizationRow> {
  const { db, clock } = installation
  // A deletion cannot be taken back: rows are being erased already.
  if (enabled && (await findDeletion(db, organization_id)))
    throw new OperationError('ORGANIZATION_DELETED')
  const now = new Date(clock.now())
  const disable_time = enabled ? null : now
  const change = { organization_id, disable_time, update_time: now }
  return await announced(installation, async (trx, announce) => {
    const row = await setOrganizationDisabled(trx, change)
    if (!row) throw new OperationError('ORGANIZATION_NOT_FOUND')
    await announce({ kind: 'organization', organization_id })
    // What its webhooks have to send waited for this.
    if (enabled) await notifyChange(trx, { kind: 'wake', topic: courierTopic })
    return row
  })
}

/** Deletes a credential by its key or its id alone, for a secret that is lost or leaked. */
export async function revokeCredential(
  context: Pick<Context, 'db' | 'concerns' | 'publishChange'>,
  key_or_id: string,
): Promise<void> {
  const { db, concerns } = context
  const row = isUuid(key_or_id)
    ? await findCredentialById(db, key_or_id)
    : await findCredentialByKeyHash(db, hashKey(key_or_id))
  if (!row) throw new OperationError('CREDENTIAL_NOT_FOUND')
  concerns?.(row)
  await removeCredential(context, row)
}
