// The life of an organization: rename, disable, delete. Each ends in an announcement, because every process caches
// credentials; the statement that stores a nonce checks the organization as well, so that a lost message is harmless.

import { OperationError } from '../../contract/errors/errors.ts'
import { invalidRequest } from '../../contract/validate.ts'
import { toTimestamp } from '../../lib/clock.ts'
import { isUuid } from '../../lib/ids.ts'
import {
  type DeletionRow,
  findDeletion,
  requestDeletion,
} from '../../storage/access/organization-erasing.ts'
import { renameOrganization } from '../../storage/access/organizations.ts'
import { announced } from '../access/announced.ts'
import type { AdminHandler, Context } from '../context.ts'
import { setEnabled } from './operator.ts'
import { domainTaken, getOrganization, presentOrganization } from './organizations.ts'

/** Gives an organization another name or domain. */
export const RenameOrganization: AdminHandler<'RenameOrganization'> = async (context, request) => {
  const { organization_id } = await getOrganization(context, request.organization_id)
  const { name, domain } = request
  const update_time = new Date(context.clock.now())
  const row = await renameOrganization(context.db, { organization_id, name, domain, update_time })
  if (row === 'taken') throw domainTaken()
  if (!row) throw new OperationError('ORGANIZATION_NOT_FOUND')
  return { organization: presentOrganization(row) }
}

/** Refuses all keys of an organization from now on. */
export const DisableOrganization: AdminHandler<'DisableOrganization'> = async (
  context,
  request,
) => {
  const { organization_id } = await getOrganization(context, request.organization_id)
  checkNotOwn(context, organization_id)
  return { organization: presentOrganization(await setEnabled(context, organization_id, false)) }
}

/** Takes the keys of an organization again. */
export const EnableOrganization: AdminHandler<'EnableOrganization'> = async (context, request) => {
  const { organization_id } = await getOrganization(context, request.organization_id)
  return { organization: presentOrganization(await setEnabled(context, organization_id, true)) }
}

/** Ends an organization at once and erases it in the background. Repeating it changes nothing. */
export const DeleteOrganization: AdminHandler<'DeleteOrganization'> = async (context, request) => {
  const { clock } = context
  const { organization_id, domain } = await getOrganization(context, request.organization_id)
  checkNotOwn(context, organization_id)
  // The domain is asked for as a confirmation: ids are easily mixed up.
  if (request.domain !== domain)
    throw invalidRequest([
      { field: 'domain', reason: 'NOT_ALLOWED', detail: 'Is not the domain of the organization.' },
    ])
  await announced(context, async (trx, announce) => {
    if (!(await requestDeletion(trx, organization_id, new Date(clock.now()))))
      throw new OperationError('ORGANIZATION_NOT_FOUND')
    // Ends WebSockets and the access to the gateway in every process, when this commits.
    await announce({ kind: 'organization', organization_id })
  })
  return await reportOf(context, organization_id)
}

/** Reads the erase report of an organization, while it is erased and ever after. */
export const GetOrganizationDeletion: AdminHandler<'GetOrganizationDeletion'> = async (
  context,
  request,
) => await reportOf(context, request.organization_id)

async function reportOf({ db }: Context, organization_id: string) {
  const row = isUuid(organization_id) ? await findDeletion(db, organization_id) : undefined
  if (!row)
    throw new OperationError('ORGANIZATION_NOT_FOUND', {
      detail: 'No organization with this id was deleted.',
    })
  return { deletion: presentDeletion(row) }
}

/** A caller that ends the organization of its own key could not undo it. */
function checkNotOwn({ principal }: Context, organization_id: string): void {
  if (principal.organization_id === organization_id) throw new OperationError('OWN_ORGANIZATION')
}

// What no statement of ours reaches; the operator has to.
const elsewhere = [
  'backups of the database (dumps, base backups, WAL archives, snapshots, replicas with a delay)',
  'archives of portolan export',
  'exports of the audit log (portolan audit export)',
  'logs of the service and of proxies, which name organization ids and client addresses',
  'rate-limit counters in Redis, which expire within a month',
  'what webhooks have delivered to receivers, and transactions on the chains',
]

const presentDeletion = (row: DeletionRow) => ({
  organization_id: row.organization_id,
  deletion_state: row.finish_time
    ? ('DELETION_STATE_DONE' as const)
    : ('DELETION_STATE_ERASING' as const),
  request_time: toTimestamp(row.request_time),
  finish_time: row.finish_time && toTimestamp(row.finish_time),
  erased: Object.entries(row.erased as Record<string, number>)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([table, rows]) => ({ table, rows })),
  credentials_revoked: row.credential_count,
  webhooks_stopped: row.webhook_count,
  transactions_canceled: row.canceled_transaction_count,
  transactions_in_flight: row.in_flight_transaction_count,
  not_erased: elsewhere,
})
