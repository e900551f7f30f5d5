// Keys of the gateway are looked up once and then answered from memory. A change is announced to all processes. Because
// announcements may be lost, a cached key is confirmed again after `maxAgeMs`, and every `recheckMs` while there is no
// listener. Known keys outlive the database for `graceMs`.

import { hash } from 'node:crypto'
import { OperationError } from '../../contract/errors/errors.ts'
import type { Clock } from '../../lib/clock.ts'
import { type CredentialUse, findCredentialByKeyHash } from '../../storage/access/credentials.ts'
import type { Change } from '../../storage/pg/changes.ts'
import type { Db } from '../../storage/pg/database.ts'
import { isKeyShaped } from './credential-keys.ts'
import { type FailureBudget, unlimitedFailures } from './failure-budget.ts'
import type { KeyForms } from './key-mac.ts'
import type { Principal } from './principal.ts'
import { principalFrom } from './principal.ts'

/** The principal of the API key in a gateway address. */
export type GatewayKeys = {
  /**
   * Answers at once for a key that was used before; undefined for one that opens nothing. Fails with
   * `TOO_MANY_FAILURES` for a key that would have to be looked up after too many failures of the client.
   * Whether the key may be used here and now is another question (`gatewayDenial`).
   */
  principalOf(
    api_key: string,
    /** The address of the client. */
    client?: string,
  ): Principal | undefined | Promise<Principal | undefined>
  /** A credential or an organization is not as it was. */
  forget(change: Change): void
  /** Changes are announced again; what was announced before may have been missed. */
  connected(): void
  /** Change notifications have stopped: cached keys are revalidated every second. */
  disconnected(): void
  /** Whether a known key would be served now without the database. */
  isServing(): boolean
  /** The credentials that were used since this was last asked, for `last_used_time`. */
  takeUsed(): CredentialUse[]
}

type Known = {
  principal: Principal
  /** When the database last said so. */
  checked: number
  /** Announcements may have been missed since. */
  isDoubted: boolean
  /** When the database could last not be asked; 0 when it could. */
  awayAt: number
  used: boolean
  client: string | undefined
}

// Keys in plain text are kept for few callers only.
const maxDigests = 1_000

/** Makes the look-up of keys. */
export function createGatewayKeys(
  { db, clock, failures = unlimitedFailures }: { db: Db; clock: Clock; failures?: FailureBudget },
  {
    maxKeys = 10_000,
    maxLookUps = 500,
    // Announcements are not durable, so that even a quiet listener is not trusted for ever.
    maxAgeMs = 30_000,
    recheckMs = 1_000,
    // How long known keys outlive the database. A key that is deleted meanwhile can only be deleted elsewhere.
    graceMs = 600_000,
    // A database that does not answer is not waited for longer than this for a key that is known.
    patienceMs = 1_000,
    // How long a wrong key is refused without a look at the database. Any change of a credential clears it.
    unknownMs = 2_000,
    forms,
  }: {
    maxKeys?: number
    maxLookUps?: number
    maxAgeMs?: number
    recheckMs?: number
    graceMs?: number
    patienceMs?: number
    unknownMs?: number
    forms?: KeyForms
  } = {},
): GatewayKeys {
  const known = new Map<string, Known>()
  const unknown = new Map<string, number>()
  const lookUps = new Map<string, { begun: number; answer: Promise<Principal | undefined> }>()
  let open = 0
  // A hash costs as much as all else that is done for a call; callers come again and again.
  const digests = new Map<string, string>()
  let generation = 0
  let isConnected = false

  const digestOf = (api_key: string): string => {
    const known = digests.get(api_key)
    if (known !== undefined) return known
    const digest = hash('sha256', api_key, 'base64')
    if (digests.size >= maxDigests) digests.delete(digests.keys().next().value as string)
    digests.set(api_key, digest)
    return digest
  }

  const remember = (digest: string, principal: Principal) => {
    if (known.size >= maxKeys && !known.has(digest))
      known.delete(known.keys().next().value as string)
    const { client } = known.get(digest) ?? {}
    const checked = clock.now()
    known.set(digest, { principal, checked, isDoubted: false, awayAt: 0, used: true, client })
  }
  const refuse = (digest: string) => {
    known.delete(digest)
    if (unknown.size >= maxKeys) unknown.delete(unknown.keys().next().value as string)
    unknown.set(digest, clock.now() + unknownMs)
  }

  const load = async (digest: string): Promise<Principal | undefined> => {
    const begun = generation
    const row = await findCredentialByKeyHash(db, Buffer.from(digest, 'base64'))
    if (!row || row.disable_time) {
      refuse(digest)
      return undefined
    }
    const principal = principalFrom(row)
    // A change announced while the query ran may be missing in its answer: it is used, not kept.
    if (begun === generation) remember(digest, principal)
    return principal
  }

  const lookUp = (digest: string): Promise<Principal | undefined> => {
    const running = lookUps.get(digest)
    // One that began before a change was announced may answer as if there was none: later calls do not share it.
    if (running?.begun === generation) return running.answer
    if (open >= maxLookUps)
      return Promise.reject(new OperationError('DATABASE_UNAVAILABLE', { retryAfter: 1 }))
    open++
    const answer = load(digest).finally(() => {
      open--
      if (lookUps.get(digest)?.answer === answer) lookUps.delete(digest)
    })
    lookUps.set(digest, { begun: generation, answer })
    return answer
  }

  /**
   * A database that is unreachable stops no key that it has confirmed within the grace. The first call notices
   * that it is unreachable, and waits for it a moment only; the others are answered at once, while it is asked again
   * every second.
   */
  const recheck = (
    digest: string,
    entry: Known,
  ): Principal | undefined | Promise<Principal | undefined> => {
    const now = clock.now()
    const isKept = () => clock.now() - entry.checked <= graceMs
    const away = (error: unknown) => {
      entry.awayAt = clock.now()
      if (!isKept() || known.get(digest) !== entry) throw error
      return entry.principal
    }
    if (entry.awayAt !== 0 && isKept()) {
      if (now - entry.awayAt >= recheckMs || now < entry.awayAt) {
        entry.awayAt = now
        lookUp(digest).catch(() => {})
      }
      return entry.principal
    }
    const answer = lookUp(digest)
    if (!isKept()) return answer
    const { promise: late, reject } = Promise.withResolvers<never>()
    const timer = setTimeout(reject, patienceMs, new Error('The database does not answer.'))
    return Promise.race([answer, late])
      .catch(away)
      .finally(() => clearTimeout(timer))
  }

  const guess = async (digest: string, client: string): Promise<Principal | undefined> => {
    if (!failures.take(client)) throw await failures.refuse(client, 'gateway')
    const principal = await failures.held(client, lookUp(digest))
    if (principal) failures.giveBack(client)
    else failures.failed(client, 'gateway')
    return principal
  }

  return {
    principalOf(api_key, client = 'unknown') {
      if (!isKeyShaped(api_key)) return undefined
      if (!digests.has(api_key) && forms?.isForged(api_key)) {
        if (!failures.take(client))
          return failures.refuse(client, 'gateway').then((error) => Promise.reject(error))
        failures.failed(client, 'gateway')
        return undefined
      }
      const digest = digestOf(api_key)
      const entry = known.get(digest)
      if (entry) {
        entry.client = client
        const age = clock.now() - entry.checked
        if (age >= 0 && age < (isConnected ? maxAgeMs : recheckMs) && !entry.isDoubted) {
          entry.used = true
          return entry.principal
        }
        return recheck(digest, entry)
      }
      const until = unknown.get(digest)
      if (until !== undefined) {
        if (until > clock.now()) {
          failures.failed(client, 'gateway')
          return undefined
        }
        unknown.delete(digest)
      }
      return guess(digest, client)
    },
    forget(change) {
      if (change.kind !== 'credential' && change.kind !== 'organization') return
      generation++
      unknown.clear()
      digests.clear()
      for (const [digest, { principal }] of known)
        if (
          change.kind === 'credential'
            ? principal.credential_id === change.credential_id
            : principal.organization_id === change.organization_id
        )
          known.delete(digest)
    },
    connected() {
      generation++
      isConnected = true
      // Not forgotten: the database may be gone again before they are used.
      for (const entry of known.values()) entry.isDoubted = true
      unknown.clear()
    },
    disconnected() {
      isConnected = false
    },
    isServing() {
      const now = clock.now()
      for (const { checked } of known.values()) if (now - checked <= graceMs) return true
      return false
    },
    takeUsed() {
      const uses: CredentialUse[] = []
      for (const entry of known.values()) {
        if (!entry.used) continue
        entry.used = false
        uses.push({ credential_id: entry.principal.credential_id, client: entry.client })
      }
      return uses
    },
  }
}
