// Statements on organizations, credentials, nonces, rate limits, quotas, idempotency keys and the master key.
// They use `pg`. Secrets are stored sealed; a key is found by its hash. Every read of tenant data takes the organization.

import { sql } from 'kysely'
import type { Db } from '../pg/database.ts'
import type { CredentialRow, OrganizationRow } from './tables.ts'

/** The position of the next page of credentials: the last one returned. */
export type CredentialCursor = Pick<CredentialRow, 'create_time' | 'credential_id'>

/** A credential with what its organization says about it. */
export type CredentialWithOrganization = CredentialRow & Pick<OrganizationRow, 'disable_time'>

/** What a credential is restricted to; null is not restricted. */
export type CredentialLimits = Pick<
  CredentialRow,
  'expire_time' | 'scopes' | 'allowed_client_networks'
>

/** A credential to be stored. */
export type NewCredential = Pick<
  CredentialRow,
  | 'credential_id'
  | 'organization_id'
  | 'role'
  | 'name'
  | 'api_key_hash'
  | 'api_key_sealed'
  | 'api_secret_sealed'
  | 'create_time'
> &
  Partial<CredentialLimits & Pick<CredentialRow, 'has_mac'>>

/** Stores a credential; undefined when its organization does not exist. */
export const insertCredential = async (
  db: Db,
  credential: NewCredential,
): Promise<CredentialRow | undefined> => {
  const { scopes = null, allowed_client_networks = null, expire_time = null } = credential
  // From a select over the organization instead of values: a missing organization inserts no row,
  // so no error has to be interpreted.
  const { rows } = await sql<CredentialRow>`
    insert into credential (credential_id, organization_id, role, name,
      api_key_hash, api_key_sealed, api_secret_sealed, create_time,
      scopes, allowed_client_networks, expire_time, has_mac)
    select ${credential.credential_id}::uuid, organization_id, ${credential.role}::text,
      ${credential.name}::text, ${credential.api_key_hash}::bytea, ${credential.api_key_sealed}::bytea,
      ${credential.api_secret_sealed}::bytea, ${credential.create_time}::timestamptz,
      ${scopes}::text[], ${allowed_client_networks}::text[], ${expire_time}::timestamptz,
      ${credential.has_mac ?? null}::boolean
    from organization where organization_id = ${credential.organization_id}
    returning *`.execute(db)
  return rows[0]
}

/** The credential whose api_key has this SHA-256, whatever its organization: it names the caller. */
export const findCredentialByKeyHash = async (
  db: Db,
  api_key_hash: Buffer,
): Promise<CredentialWithOrganization | undefined> =>
  await db
    .selectFrom('credential')
    .innerJoin('organization', 'organization.organization_id', 'credential.organization_id')
    .selectAll('credential')
    .select('organization.disable_time')
    .where('credential.api_key_hash', '=', api_key_hash)
    .executeTakeFirst()

/** The credential with this id, whatever its organization: for the operator of the installation. */
export const findCredentialById = async (
  db: Db,
  credential_id: string,
): Promise<CredentialRow | undefined> =>
  await db
    .selectFrom('credential')
    .selectAll()
    .where('credential_id', '=', credential_id)
    .executeTakeFirst()

/** The revisions of those of these credentials that are valid: they exist, and their organization is enabled. */
export const listRevisions = async (
  db: Db,
  credential_ids: readonly string[],
): Promise<Map<string, number>> => {
  // The cached credentials of a process are compared with these; a missing id means that the
  // credential is gone or its organization disabled.
  const { rows } = await sql<{ credential_id: string; revision: number }>`
    select c.credential_id, coalesce(c.revision, 0) as revision
    from credential c join organization o on o.organization_id = c.organization_id
    where c.credential_id = any(${credential_ids as string[]}::uuid[])
      and o.disable_time is null`.execute(db)
  return new Map(rows.map((row) => [row.credential_id, row.revision]))
}

/** Deletes a credential of an organization; false when it has none of that id. */
export const deleteCredential = async (
  db: Db,
  { credential_id, organization_id }: Pick<CredentialRow, 'credential_id' | 'organization_id'>,
): Promise<boolean> => {
  const { numDeletedRows } = await db
    .deleteFrom('credential')
    .where('credential_id', '=', credential_id)
    .where('organization_id', '=', organization_id)
    .executeTakeFirst()
  return numDeletedRows > 0n
}

/** One page of an organization's credentials, oldest first. */
export const listCredentials = async (
  db: Db,
  organization_id: string,
  { after, limit }: { after?: CredentialCursor | undefined; limit: number },
): Promise<CredentialRow[]> => {
  const page = db
    .selectFrom('credential')
    .selectAll()
    .where('organization_id', '=', organization_id)
    .orderBy('create_time')
    .orderBy('credential_id')
    .limit(limit)
  if (!after) return await page.execute()
  return await page
    .where((eb) =>
      eb(
        eb.refTuple('create_time', 'credential_id'),
        '>',
        eb.tuple(after.create_time, after.credential_id),
      ),
    )
    .execute()
}

/** A credential that was used, and the address of the client where it is known. */
export type CredentialUse = { credential_id: string; client: string | undefined }

/** Notes that these credentials were used. Answers with those whose row was locked: they are still to be noted. */
export const touchCredentials = async (
  db: Db,
  uses: readonly CredentialUse[],
  time: Date,
): Promise<CredentialUse[]> => {
  if (uses.length === 0) return []
  const ids = uses.map(({ credential_id }) => credential_id)
  const clients = uses.map(({ client }) => client ?? null)
  // `skip locked`: the time of last use is a hint, and a request must not wait for it.
  const { rows } = await sql<{ credential_id: string }>`
    with older as (
      select u.credential_id, u.client
      from unnest(${ids}::uuid[], ${clients}::text[]) as u (credential_id, client)
      join credential l using (credential_id)
      where l.last_used_time is null or l.last_used_time < ${time}::timestamptz),
    used as materialized (
      select l.credential_id, o.client from older o join credential l using (credential_id)
      for no key update of l skip locked),
    noted as (
      update credential c set last_used_time = ${time}::timestamptz,
        last_used_address = coalesce(used.client, c.last_used_address)
      from used where c.credential_id = used.credential_id)
    select credential_id from older where credential_id not in (select credential_id from used)`.execute(
    db,
  )
  const locked = new Set(rows.map(({ credential_id }) => credential_id))
  return uses.filter(({ credential_id }) => locked.has(credential_id))
}

/** The credential with this id, locked until the transaction ends; undefined when there is none. */
export const lockCredential = async (
  db: Db,
  credential_id: string,
): Promise<CredentialRow | undefined> =>
  await db
    .selectFrom('credential')
    .selectAll()
    .where('credential_id', '=', credential_id)
    .forNoKeyUpdate()
    .executeTakeFirst()

/** Changes what a credential is called and restricted to; every process notices by the revision. */
export const updateCredential = async (
  db: Db,
  { credential_id, organization_id }: Pick<CredentialRow, 'credential_id' | 'organization_id'>,
  change: Partial<CredentialLimits & Pick<CredentialRow, 'name' | 'successor_credential_id'>>,
): Promise<CredentialRow | undefined> =>
  await db
    .updateTable('credential')
    .set({ ...change, revision: sql<number>`coalesce(revision, 0) + 1` })
    .where('credential_id', '=', credential_id)
    .where('organization_id', '=', organization_id)
    .returningAll()
    .executeTakeFirst()

/**
 * Makes room for a new credential of an organization and says whether there is any: what a rotation has
 * replaced and the clock has ended goes first. Creations of one organization wait for each other here.
 */
export const makeRoomForCredential = async (
  db: Db,
  organization_id: string,
  { limit, now }: { limit: number; now: Date },
): Promise<boolean> => {
  // The lock on the organization makes creations wait for each other, so that two of them cannot
  // both count the last free place.
  await db
    .selectFrom('organization')
    .select('organization_id')
    .where('organization_id', '=', organization_id)
    .forNoKeyUpdate()
    .execute()
  const count = async () => {
    const { rows } = await sql<{ used: number }>`
      select count(*)::int4 as used from credential where organization_id = ${organization_id}`.execute(
      db,
    )
    return rows[0]?.used ?? 0
  }
  if ((await count()) < limit) return true
  // Only when there is no room: a replaced credential stays readable until its place is needed.
  await db
    .deleteFrom('credential')
    .where('organization_id', '=', organization_id)
    .where('successor_credential_id', 'is not', null)
    .where('expire_time', '<', now)
    .execute()
  return (await count()) < limit
}

/** Whether a credential has signed a request within the time that nonces are remembered. */
export const hasSpentNonces = async (db: Db, credential_id: string): Promise<boolean> => {
  const row = await db
    .selectFrom('request_nonce')
    .select('nonce')
    .where('credential_id', '=', credential_id)
    .limit(1)
    .executeTakeFirst()
  return row !== undefined
}

/** Whether any key was made before keys carried a MAC. */
export const hasKeysWithoutMac = async (db: Db): Promise<boolean> => {
  const row = await db
    .selectFrom('credential')
    .select('credential_id')
    .where('has_mac', 'is not', true)
    .limit(1)
    .executeTakeFirst()
  return row !== undefined
}

/** The credential made last, of any organization: a sample to try the master key on. */
export const findNewestCredential = async (
  db: Db,
): Promise<Pick<CredentialRow, 'credential_id' | 'api_key_sealed' | 'create_time'> | undefined> =>
  await db
    .selectFrom('credential')
    .select(['credential_id', 'api_key_sealed', 'create_time'])
    .orderBy('create_time', 'desc')
    .limit(1)
    .executeTakeFirst()
