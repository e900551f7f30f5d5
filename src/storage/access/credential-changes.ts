import { sql } from 'kysely'
import type { Db } from '../pg/database.ts'
import type { CredentialLimits } from './credentials.ts'
import type { CredentialRow } from './tables.ts'

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
