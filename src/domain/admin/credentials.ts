import type { Catalogue } from '../../contract/catalogue.ts'
import { OperationError } from '../../contract/errors.ts'
import { toTimestamp } from '../../lib/clock.ts'
import { notifyChange } from '../../storage/changes.ts'
import {
  deleteCredential,
  findCredentialByKeyHash,
  insertCredential,
  listCredentials,
} from '../../storage/credentials.ts'
import { createPair, hashKey, keyHint, sameSecret, sealContext } from '../access/credential-keys.ts'
import type { Handler, Installation, Principal } from '../context.ts'
import { makePage, readPage } from '../pages.ts'
import { getOrganization } from './organizations.ts'

type Admin = Catalogue<'admin'>
type HandlerOf<name extends keyof Admin> = Handler<Admin[name]['request'], Admin[name]['response']>

/** Deletes a credential by both its halves; a member reaches its own organization's only. */
export const DeleteCredential: HandlerOf<'DeleteCredential'> = async (context, request) => {
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

/** Creates a credential; its secret is in this answer and nowhere else in the clear. */
export const CreateCredential: HandlerOf<'CreateCredential'> = async (context, request) => {
  const { organization_id } = await getOrganization(context, request.organization_id)
  const role = request.role ?? 'ROLE_MEMBER'
  const name = request.name ?? ''
  return await context.db.transaction().execute(async (db) => {
    const made = await createCredential({ ...context, db }, { organization_id, role, name })
    const answer = { credential: made }
    await context.record?.(db, answer)
    return answer
  })
}

/** Lists the credentials of an organization in the order of their creation. */
export const ListCredentials: HandlerOf<'ListCredentials'> = async (context, request) => {
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
  const credentials = items.map((row) => ({
    api_key_hint: keyHint(
      context.sealer.open(row.api_key_sealed, sealContext('api_key', row.credential_id)).toString(),
    ),
    credential_id: row.credential_id,
    organization_id,
    role: row.role,
    name: row.name,
    create_time: toTimestamp(row.create_time),
    last_used_time: row.last_used_time && toTimestamp(row.last_used_time),
  }))
  return { credentials, pagination }
}

/** Makes and stores a pair; used by the operation, the command line and the first start. */
export async function createCredential(
  { db, ids, clock, sealer }: Installation,
  options: { organization_id: string; role: Principal['role']; name: string },
) {
  const { organization_id, role, name } = options
  const credential_id = ids.uuid()
  const { api_key, api_secret } = createPair(ids)
  const create_time = new Date(clock.now())
  const row = await insertCredential(db, {
    credential_id,
    organization_id,
    role,
    name,
    api_key_hash: hashKey(api_key),
    api_key_sealed: sealer.seal(api_key, sealContext('api_key', credential_id)),
    api_secret_sealed: sealer.seal(api_secret, sealContext('api_secret', credential_id)),
    create_time,
  })
  if (!row) throw new OperationError('ORGANIZATION_NOT_FOUND')
  return {
    api_key,
    api_secret,
    credential_id,
    organization_id,
    role,
    name,
    create_time: toTimestamp(create_time),
  }
}
