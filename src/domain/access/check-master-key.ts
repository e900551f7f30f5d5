import { findNewestCredential } from '../../storage/access/newest-credential.ts'
import type { Sealer } from '../../storage/access/seal.ts'
import type { Db } from '../../storage/pg/database.ts'
import { sealContext } from './credential-keys.ts'

/** Opens a stored key, so that a wrong master key is noticed before anything is sealed with it; throws SealError. */
export async function checkMasterKey({ db, sealer }: { db: Db; sealer: Sealer }): Promise<void> {
  const row = await findNewestCredential(db)
  if (row) sealer.open(row.api_key_sealed, sealContext('api_key', row.credential_id))
}
