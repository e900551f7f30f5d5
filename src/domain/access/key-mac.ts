import { createHmac, timingSafeEqual } from 'node:crypto'
import type { Clock } from '../../lib/clock.ts'
import type { Ids } from '../../lib/ids.ts'
import type { Log } from '../../lib/log.ts'
import { hasKeysWithoutMac } from '../../storage/access/credentials.ts'
import {
  findInstallationKey,
  insertInstallationKey,
} from '../../storage/access/installation-keys.ts'
import type { Sealer } from '../../storage/access/seal.ts'
import type { Db } from '../../storage/pg/database.ts'

/** The row of the key under which API keys are made; a rotation of the master key seals it again. */
const keyName = 'api_key_mac'

/** What the sealed key of the installation is bound to. */
export const installationKeyContext = (name: string): string => `installation_key:${name}`

const idBytes = 18
const macBytes = 12
/** 18 random bytes and 12 of the MAC, in base64url. */
const withMac = /^plk_[\w-]{40}$/
/** As keys were made before: 18 random bytes. */
const withoutMac = /^plk_[\w-]{24}$/

/** Makes API keys that show without a look-up that they were made here. */
export type KeyMac = {
  /** A key of 144 random bits and their MAC. */
  create(ids: Ids): string
  /** Whether the key can only have been made up. */
  isForged(api_key: string): boolean
}

/**
 * Loads the key of the installation, and makes it at the first use. It is not derived from the master
 * key but sealed under it, so that API keys outlive a rotation of the master key.
 */
export async function loadKeyMac({
  db,
  sealer,
  clock,
  ids,
}: {
  db: Db
  sealer: Sealer
  clock: Clock
  ids: Ids
}): Promise<KeyMac> {
  const context = installationKeyContext(keyName)
  let sealed = await findInstallationKey(db, keyName)
  if (!sealed) {
    const key_sealed = sealer.seal(ids.bytes(32), context)
    const create_time = new Date(clock.now())
    await insertInstallationKey(db, { name: keyName, key_sealed, create_time })
    sealed = await findInstallationKey(db, keyName)
  }
  if (!sealed) throw new Error('The key of API keys could not be stored.')
  return createKeyMac(sealer.open(sealed, context))
}

/** The same with a key that is at hand. */
export function createKeyMac(key: Buffer): KeyMac {
  const macOf = (id: Buffer): Buffer =>
    createHmac('sha256', key).update('plk_').update(id).digest().subarray(0, macBytes)
  return {
    create: (ids) => {
      const id = ids.bytes(idBytes)
      return `plk_${Buffer.concat([id, macOf(id)]).toString('base64url')}`
    },
    isForged: (api_key) => {
      if (!withMac.test(api_key)) return false
      const bytes = Buffer.from(api_key.slice(4), 'base64url')
      return !timingSafeEqual(bytes.subarray(idBytes), macOf(bytes.subarray(0, idBytes)))
    },
  }
}

/** Refuses keys that were never issued, as far as that can be known without the database. */
export type KeyForms = {
  isForged(api_key: string): boolean
}

const refreshMs = 30_000

/**
 * Joins the MAC with what is known of keys without one: once no credential has such a key, all of them
 * are made up. A process of an earlier version may still make one, so this is asked again.
 */
export function createKeyForms({
  db,
  clock,
  log,
  mac,
}: {
  db: Db
  clock: Clock
  log: Log
  mac: KeyMac
}): KeyForms & { refresh(): Promise<void> } {
  let hasOld = true
  let askedAt = Number.NEGATIVE_INFINITY

  const refresh = async () => {
    askedAt = clock.now()
    try {
      hasOld = await hasKeysWithoutMac(db)
    } catch (error) {
      // Not known: such keys are looked up.
      hasOld = true
      log.warn({ err: error }, 'reading the API key formats failed')
    }
  }

  return {
    refresh,
    isForged(api_key) {
      if (mac.isForged(api_key)) return true
      if (withMac.test(api_key)) return false
      if (!withoutMac.test(api_key)) return true
      if (clock.now() - askedAt >= refreshMs) void refresh()
      return !hasOld
    },
  }
}
