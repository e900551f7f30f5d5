import type { Db } from '../pg/database.ts'
import type { CredentialRow } from './tables.ts'

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
