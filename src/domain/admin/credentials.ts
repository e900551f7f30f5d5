// Credentials: created, rotated, restricted and deleted. None can be given more than its giver has (`access/grants.ts`).
// Every change is announced, so that all processes forget what they know of the credential.

import { OperationError } from '../../contract/errors/errors.ts'
import { maxCredentials, rotationOverlap } from '../../contract/limits.ts'
import { includesRole, type Role } from '../../contract/roles.ts'
import { invalidRequest } from '../../contract/validate.ts'
import { services } from '../../contract/variant.ts'
import { toTimestamp } from '../../lib/clock.ts'
import { isUuid } from '../../lib/ids.ts'
import { findNearest } from '../../lib/nearest.ts'
import {
  type CredentialLimits,
  deleteCredential,
  findCredentialById,
  findCredentialByKeyHash,
  hasSpentNonces,
  insertCredential,
  listCredentials,
  lockCredential,
  makeRoomForCredential,
  updateCredential,
} from '../../storage/access/credentials.ts'
import type { CredentialRow } from '../../storage/access/tables.ts'
import type { Db } from '../../storage/pg/database.ts'
import { type Announce, announced } from '../access/announced.ts'
import { createPair, hashKey, keyHint, sameSecret, sealContext } from '../access/credential-keys.ts'
import { exceeded, grantOf, presentLimits, readLimits, requireGrant } from '../access/grants.ts'
import { loadKeyMac } from '../access/key-mac.ts'
import type { AdminHandler, Context, Installation } from '../context.ts'
import { makePage, readPage } from '../pages.ts'
import { getOrganization } from './organizations.ts'

/** Deletes a credential by both its halves; others than an administrator reach their own organization's only. */
export const DeleteCredential: AdminHandler<'DeleteCredential'> = async (context, request) => {
  const { db, sealer } = context
  // An unknown key, a key of another organization and a wrong secret get the same answer: it must not show
  // which keys exist.
  const row = findVisible(context, await findCredentialByKeyHash(db, hashKey(request.api_key)))
  // The secret is opened only for a credential that the caller may see.
  const secret = row
    ? sealer.open(row.api_secret_sealed, sealContext('api_secret', row.credential_id)).toString()
    : ''
  if (!row || !sameSecret(secret, request.api_secret))
    throw new OperationError('CREDENTIAL_NOT_FOUND')
  await removeCredential(context, row)
  return {}
}

/** Creates a credential with no more than its creator has; its secret is in this answer and nowhere else. */
export const CreateCredential: AdminHandler<'CreateCredential'> = async (context, request) => {
  const { organization_id } = await getOrganization(context, request.organization_id)
  const role = request.role ?? 'ROLE_MEMBER'
  const held = grantOf(context.principal)
  checkScopes(context, request.scopes)
  // An expiry of the creator bounds that of the new credential, see `readLimits`.
  const limits = readLimits(request, held, context.clock.now())
  requireGrant(held, { role, ...limits })
  const name = request.name ?? ''
  return await context.db.transaction().execute(async (db) => {
    const options = { organization_id, role, name, ...limits }
    // The idempotency record is part of the transaction: a repeated request gets this answer, or none was stored.
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

// What every caller of `createCredential` has: the command line has no principal.
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
  // The MAC within the key lets the gateway refuse invented keys without a look-up.
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

/** A successor that is younger may be on its way to the caller, and its use may not be noted yet. */
const settledMs = 60_000

/** Replaces a credential by a new pair. The old one stays valid for the time of the overlap. */
export const RotateCredential: AdminHandler<'RotateCredential'> = async (context, request) => {
  const { clock, principal } = context
  const credential_id = request.credential_id ?? principal.credential_id
  const isSelf = credential_id === principal.credential_id
  if (!isSelf && !includesRole(principal.role, 'ROLE_OWNER'))
    throw new OperationError('PERMISSION_DENIED', {
      detail: `To rotate another credential needs ROLE_OWNER; this one has ${principal.role}.`,
      extra: { missing: 'ROLE_OWNER' },
    })
  const now = clock.now()
  return await announced(context, async (trx, announce) => {
    // Locked, so that two rotations of one credential wait for each other and the second sees the
    // successor of the first.
    const row = mine(context, await lockOf(trx, credential_id))
    const before = row.successor_credential_id
      ? await replaceable(trx, row.successor_credential_id, now)
      : undefined
    // The life of the rotated one ends with its overlap; that of its successor is the one it had before.
    const source = before ?? row
    const limits = readLimits({ ...expiryOf(request) }, source, now)
    const wanted = { role: row.role, ...limits }
    requireGrant(isSelf ? { ...source, role: row.role } : grantOf(principal), wanted)
    // A repeated rotation whose answer was lost replaces the unused successor, so no valid pair is left behind.
    if (before) await remove(trx, before, announce)
    const { organization_id, role, name } = row
    const options = { organization_id, role, name, ...limits }
    const created = await insertPair({ ...context, db: trx }, options)
    const ends = now + (request.overlap_seconds ?? rotationOverlap.defaultSeconds) * 1000
    // A rotation never extends the life of the old pair.
    const expire_time = new Date(Math.min(ends, row.expire_time?.getTime() ?? ends))
    const { credential_id: successor_credential_id } = created
    await updateCredential(trx, row, { expire_time, successor_credential_id })
    await announce({ kind: 'credential', organization_id, credential_id })
    const answer = { credential: created }
    await context.record?.(trx, answer)
    return answer
  })
}

/** Deletes a credential by its id or its key, without its secret. */
export const RevokeCredential: AdminHandler<'RevokeCredential'> = async (context, request) => {
  const { db } = context
  const { credential_id, api_key } = request
  const byKey =
    api_key === undefined ? undefined : await findCredentialByKeyHash(db, hashKey(api_key))
  const byId =
    credential_id === undefined || !isUuid(credential_id)
      ? undefined
      : await findCredentialById(db, credential_id)
  // Both are allowed, but must name the same credential.
  if (api_key !== undefined && credential_id !== undefined)
    if (byKey?.credential_id !== byId?.credential_id)
      throw new OperationError('CREDENTIAL_NOT_FOUND')
  await removeCredential(context, mine(context, byKey ?? byId))
  return {}
}

/** Changes what a credential is called and restricted to. */
export const UpdateCredential: AdminHandler<'UpdateCredential'> = async (context, request) => {
  const { clock, principal } = context
  const { remove_expire_time = false, name } = request
  return await announced(context, async (trx, announce) => {
    // Locked: the check of the grant and the change must see the same restrictions.
    const row = mine(context, await lockOf(trx, request.credential_id))
    checkScopes(context, request.scopes)
    const read = readLimits(request, row, clock.now())
    const limits = { ...read, ...(remove_expire_time && { expire_time: null }) }
    const wanted = { role: row.role, ...limits }
    // To restrict a credential further needs no grant; to extend it needs all that it would have.
    if (exceeded(row, wanted).length > 0) requireGrant(grantOf(principal), wanted)
    const change = { ...limits, ...(name !== undefined && { name }) }
    const changed = await updateCredential(trx, row, change)
    if (!changed) throw new OperationError('CREDENTIAL_NOT_FOUND')
    const { organization_id, credential_id } = row
    await announce({ kind: 'credential', organization_id, credential_id })
    return { credential: presentCredential(context, changed) }
  })
}

/** A credential that the caller may administer. One of another organization answers as one that is not there. */
function mine(context: Context, found: CredentialRow | undefined): CredentialRow {
  const { principal } = context
  const row = findVisible(context, found)
  if (!row) throw new OperationError('CREDENTIAL_NOT_FOUND')
  if (!includesRole(principal.role, row.role))
    throw new OperationError('PERMISSION_DENIED', {
      detail: `The credential has ${row.role}, which is more than ${principal.role}.`,
      extra: { missing: row.role },
    })
  return row
}

/** A credential of any organization for an administrator, of their own for others; the audit log has the event there. */
function findVisible(
  { principal, concerns }: Context,
  row: CredentialRow | undefined,
): CredentialRow | undefined {
  if (!row) return undefined
  if (principal.role !== 'ROLE_ADMIN' && row.organization_id !== principal.organization_id)
    return undefined
  concerns?.(row)
  return row
}

// A text that is not a UUID would be an error of the database instead of "not found".
const lockOf = async (db: Db, credential_id: string): Promise<CredentialRow | undefined> =>
  isUuid(credential_id) ? await lockCredential(db, credential_id) : undefined

/** The successor of an earlier rotation, if it was never used and may go; undefined if it is gone already. */
async function replaceable(
  db: Db,
  successor_credential_id: string,
  now: number,
): Promise<CredentialRow | undefined> {
  const row = await lockCredential(db, successor_credential_id)
  if (!row) return undefined
  const isUsed =
    row.last_used_time !== null ||
    row.successor_credential_id !== null ||
    (await hasSpentNonces(db, successor_credential_id))
  if (isUsed || now - row.create_time.getTime() < settledMs)
    throw new OperationError('CREDENTIAL_ROTATED', {
      detail: `The credential was rotated to ${successor_credential_id}, which ${isUsed ? 'is in use' : 'was made within the last minute'}.`,
    })
  return row
}

/** Deletes a credential and announces it. */
export const removeCredential = (
  context: Pick<Context, 'db' | 'publishChange'>,
  row: CredentialRow,
): Promise<void> => announced(context, (trx, announce) => remove(trx, row, announce))

async function remove(trx: Db, row: CredentialRow, announce: Announce): Promise<void> {
  const { organization_id, credential_id } = row
  if (!(await deleteCredential(trx, row))) throw new OperationError('CREDENTIAL_NOT_FOUND')
  await announce({ kind: 'credential', organization_id, credential_id })
}

// An absent field must stay absent: `undefined` would be read as a value.
const expiryOf = ({ expire_time }: { expire_time?: string }) =>
  expire_time === undefined ? {} : { expire_time }

/** A scope of a chain that does not exist would never apply; the mistake would go unnoticed. */
function checkScopes({ limits }: Context, scopes: readonly string[] = []): void {
  if (!limits) return
  // Services and chains are one list of names: a scope may name either.
  const known = new Set(['*', ...Object.keys(services), ...limits.chains])
  const errors = scopes.flatMap((scope) => {
    const name = scope.startsWith('gateway') ? scope.split(/[:/]/)[1] : scope.split(':')[0]
    if (name === undefined || name === 'read' || known.has(name)) return []
    const nearest = findNearest(name, known)
    const meant = nearest ? ` Did you mean ${nearest}?` : ''
    return [
      { field: 'scopes', reason: 'NOT_ALLOWED' as const, detail: `No chain "${name}".${meant}` },
    ]
  })
  if (errors.length > 0) throw invalidRequest(errors)
}
