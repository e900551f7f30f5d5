import { OperationError } from '../../contract/errors/errors.ts'
import type { Role } from '../../contract/roles.ts'
import { toTimestamp } from '../../lib/clock.ts'
import { makeRoomForCredential } from '../../storage/access/credential-changes.ts'
import {
  type CredentialLimits,
  deleteCredential,
  findCredentialByKeyHash,
  insertCredential,
  listCredentials,
} from '../../storage/access/credentials.ts'
import type { CredentialRow } from '../../storage/access/tables.ts'
import { notifyChange } from '../../storage/pg/changes.ts'
import { createPair, hashKey, keyHint, sameSecret, sealContext } from '../access/credential-keys.ts'
import { grantOf, presentLimits, readLimits, requireGrant } from '../access/grants.ts'
import { loadKeyMac } from '../access/key-mac.ts'
import type { AdminHandler, Context, Installation } from '../context.ts'
import { makePage, readPage } from '../pages.ts'
import { getOrganization } from './organizations.ts'

/** What no organization needs; the list of its keys stays readable, and one tenant fills no table. */
const maxCredentials = 1_000

/** Deletes a credential by both its halves; others than an administrator reach their own organization's only. */
export const DeleteCredential: AdminHandler<'DeleteCredential'> = async (context, request) => {
  const { db, sealer, principal } = context
  const row = await findCredentialByKeyHash(db, hashKey(request.api_key))
  const mine =
    row && (principal.role === 'ROLE_ADMIN' || row.organization_id === principal.organization_id)
  const secret = mine
    ? sealer.open(row.api_secret_sealed, sealContext('api_secret', row.credential_id)).toString()
    : ''
  if (!mine || !sameSecret(secret, request.api_secret))
    throw new OperationError('CREDENTIAL_NOT_FOUND')
  const { credential_id, organization_id } = row
  if (!(await deleteCredential(db, { credential_id, organization_id })))
    throw new OperationError('CREDENTIAL_NOT_FOUND')
  await notifyChange(db, { kind: 'credential', organization_id, credential_id })
  return {}
}

/** Creates a credential with no more than its creator has; its secret is in this answer and nowhere else. */
export const CreateCredential: AdminHandler<'CreateCredential'> = async (context, request) => {
  const { organization_id } = await getOrganization(context, request.organization_id)
  const role = request.role ?? 'ROLE_MEMBER'
  const held = grantOf(context.principal)
  const limits = readLimits(request, held, context.clock.now())
  requireGrant(held, { role, ...limits })
  const name = request.name ?? ''
  return await context.db.transaction().execute(async (db) => {
    const options = { organization_id, role, name, ...limits }
    const answer = { credential: await insertPair({ ...context, db }, options) }
    await context.record?.(db, answer)
    return answer
  })
}

/** Lists the credentials of an organization in the order of their creation. */
export const ListCredentials: AdminHandler<'ListCredentials'> = async (context, request) => {
  const { organization_id } = await getOrganization(context, request.organization_id)
  const { limit, after } = readPage<[string, string]>(context, request)
  const rows = await listCredentials(context.db, organization_id, {
    limit: limit + 1,
    ...(after && { after: { create_time: new Date(after[0]), credential_id: after[1] } }),
  })
  const { items, pagination } = makePage(context, request, rows, (row) => [
    toTimestamp(row.create_time),
    row.credential_id,
  ])
  return { credentials: items.map((row) => presentCredential(context, row)), pagination }
}

/** A credential as it is listed: enough of its key to identify it. */
export const presentCredential = ({ sealer }: Pick<Context, 'sealer'>, row: CredentialRow) => ({
  api_key_hint: keyHint(
    sealer.open(row.api_key_sealed, sealContext('api_key', row.credential_id)).toString(),
  ),
  credential_id: row.credential_id,
  organization_id: row.organization_id,
  role: row.role,
  name: row.name,
  ...presentLimits(row),
  create_time: toTimestamp(row.create_time),
  last_used_time: row.last_used_time && toTimestamp(row.last_used_time),
  last_used_address: row.last_used_address,
  successor_credential_id: row.successor_credential_id,
})

type Store = Pick<Installation, 'db' | 'ids' | 'clock' | 'sealer'>
type NewCredential = {
  organization_id: string
  role: Role
  name: string
} & Partial<CredentialLimits>

/** Makes and stores a pair; used by the operation, the command line and the first start. */
export const createCredential = (store: Store, options: NewCredential) =>
  store.db.transaction().execute((db) => insertPair({ ...store, db }, options))

/** The same as part of a transaction. */
export async function insertPair(store: Store, options: NewCredential) {
  const { db, ids, clock, sealer } = store
  const { organization_id, role, name } = options
  const credential_id = ids.uuid()
  const { api_key, api_secret } = createPair(ids, await loadKeyMac(store))
  const create_time = new Date(clock.now())
  const room = { limit: maxCredentials, now: create_time }
  if (!(await makeRoomForCredential(db, organization_id, room)))
    throw new OperationError('TOO_MANY_CREDENTIALS')
  const row = await insertCredential(db, {
    ...options,
    credential_id,
    api_key_hash: hashKey(api_key),
    api_key_sealed: sealer.seal(api_key, sealContext('api_key', credential_id)),
    api_secret_sealed: sealer.seal(api_secret, sealContext('api_secret', credential_id)),
    create_time,
    has_mac: true,
  })
  if (!row) throw new OperationError('ORGANIZATION_NOT_FOUND')
  return {
    ...{ api_key, api_secret, credential_id, organization_id, role, name },
    ...presentLimits(row),
    create_time: toTimestamp(create_time),
  }
}
