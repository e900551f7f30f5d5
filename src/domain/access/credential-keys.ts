import { createHash, timingSafeEqual } from 'node:crypto'
import type { Ids } from '../../lib/ids.ts'
import { findNewestCredential } from '../../storage/access/credentials.ts'
import type { Sealer } from '../../storage/access/seal.ts'
import type { Db } from '../../storage/pg/database.ts'
import type { KeyMac } from './key-mac.ts'

/** A fresh pair. The prefixes distinguish the halves for secret scanners and people. */
export const createPair = (ids: Ids, mac: KeyMac): { api_key: string; api_secret: string } => ({
  api_key: mac.create(ids),
  api_secret: `pls_${ids.bytes(32).toString('base64url')}`,
})

/** Enough of a key to identify it, and too little to use it. */
export const keyHint = (api_key: string): string => `${api_key.slice(0, 8)}…`

const keyPattern = /^[\w-]{1,200}$/

/** Whether a text can be a key at all. */
export const isKeyShaped = (api_key: string | undefined): api_key is string =>
  api_key !== undefined && keyPattern.test(api_key)

/** What a key is looked up by: a dump of the database then holds no key that opens the gateway. */
export const hashKey = (api_key: string): Buffer => createHash('sha256').update(api_key).digest()

/** Compares secrets of any length in constant time. */
export const sameSecret = (a: string, b: string): boolean => timingSafeEqual(hashKey(a), hashKey(b))

/** What a sealed half is bound to, so that halves cannot be swapped between rows. */
export const sealContext = (half: 'api_key' | 'api_secret', credential_id: string): string =>
  `credential:${credential_id}:${half}`

/** Opens a stored key, so that a wrong master key is noticed before anything is sealed with it; throws SealError. */
export async function checkMasterKey({ db, sealer }: { db: Db; sealer: Sealer }): Promise<void> {
  const row = await findNewestCredential(db)
  if (row) sealer.open(row.api_key_sealed, sealContext('api_key', row.credential_id))
}
