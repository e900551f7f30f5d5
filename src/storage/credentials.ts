import { sql } from 'kysely'
import type { CredentialRow, OrganizationRow } from './access-tables.ts'
import type { Db } from './database.ts'

/** Where a page of credentials goes on: the last one seen. */
export type CredentialCursor = Pick<CredentialRow, 'create_time' | 'credential_id'>

/** A credential with what its organization says about it. */
export type CredentialWithOrganization = CredentialRow & Pick<OrganizationRow, 'disable_time'>

/** Stores a credential; undefined when its organization does not exist. */
export const insertCredential = async (
  db: Db,
  credential: Omit<CredentialRow, 'last_used_time' | 'nonce_lead_ms'>,
): Promise<CredentialRow | undefined> => {
  const { rows } = await sql<CredentialRow>`
    insert into credential (credential_id, organization_id, role, name,
      api_key_hash, api_key_sealed, api_secret_sealed, create_time)
    select ${credential.credential_id}::uuid, organization_id, ${credential.role}::text,
      ${credential.name}::text, ${credential.api_key_hash}::bytea, ${credential.api_key_sealed}::bytea,
      ${credential.api_secret_sealed}::bytea, ${credential.create_time}::timestamptz
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

/** Notes that these credentials were used; a row that another replica is noting is left to it. */
export const touchCredentials = async (
  db: Db,
  credential_ids: readonly string[],
  time: Date,
): Promise<void> => {
  if (credential_ids.length === 0) return
  await sql`
    update credential set last_used_time = ${time}::timestamptz
    where credential_id in (
      select credential_id from credential
      where credential_id = any(${credential_ids}::uuid[])
        and (last_used_time is null or last_used_time < ${time}::timestamptz)
      for no key update skip locked)`.execute(db)
}
