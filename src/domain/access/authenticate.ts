// Access: authentication of signed requests and gateway keys, roles and scopes, admission by rate limits,
// idempotency keys and the sealing of secrets. It uses storage. A deleted credential is refused at once in
// every process, and no nonce is accepted twice.

import { createHmac, timingSafeEqual } from 'node:crypto'
import { OperationError } from '../../contract/errors/errors.ts'
import { nonceTime, signedPrefix } from '../../contract/signature.ts'
import {
  type CredentialUse,
  findCredentialById,
  findCredentialByKeyHash,
} from '../../storage/access/credentials.ts'
import type { NonceOutcome } from '../../storage/access/nonces.ts'
import type { Change } from '../../storage/pg/changes.ts'
import type { Installation } from '../context.ts'
import { expired, isExpired } from './authorize.ts'
import { hashKey, isKeyShaped, sealContext } from './credential-keys.ts'
import { type FailureBudget, unlimitedFailures } from './failure-budget.ts'
import type { KeyForms } from './key-mac.ts'
import type { NonceSpender } from './nonce-spender.ts'
import type { Principal } from './principal.ts'
import { principalFrom } from './principal.ts'

/** The parts of a request that its signature covers, and the three credentials. */
export type SignedRequest = {
  api_key: string | undefined
  nonce: string | undefined
  signature: string | undefined
  method: string
  /** The request target as sent, with the query. */
  path: string
  body: Uint8Array
  /** The address that the request comes from. Not signed. */
  client: string
}

/** Checks signed requests (spec 5, docs/decisions/authentication.md). */
export type Authenticator = {
  /**
   * `onSigned` is called for a valid signature before its nonce is used: no answer may be sent yet. The
   * principal that is answered is another one when the credential was changed meanwhile.
   */
  authenticate(
    request: SignedRequest,
    onSigned?: (principal: Principal) => void,
  ): Promise<Principal>
  /**
   * Admits the holder of a token that a credential was given, once over all processes. Undefined where the token was
   * used, or the credential is gone or expired.
   */
  redeem(token: {
    credential_id: string
    nonce: string
    made: number
  }): Promise<Principal | undefined>
  /** The credentials that were used since this was last asked, for `last_used_time`. */
  takeUsed(): CredentialUse[]
  /** A credential or an organization is not as it was: what was unknown may be known now. */
  forget(change: Change): void
}

type Known = { principal: Principal; secret: string; revision: number }

/** What the last look-up of a key that failed has shown; it costs one look-up in this time, not more. */
type Failed = { known: Known | undefined; until: number }

const failedMs = 2_000

/** Credentials kept in memory; one entry is well under a kilobyte. */
const cacheSize = 10_000

/** Makes the check of the three credentials. */
export function createAuthenticator(
  installation: Installation,
  options: {
    nonceWindowMs: number
    nonces: NonceSpender
    failures?: FailureBudget
    forms?: KeyForms
  },
): Authenticator {
  const { db, clock, sealer } = installation
  const { nonceWindowMs, nonces, failures = unlimitedFailures, forms } = options
  const cache = new Map<string, Known>()
  const failed = new Map<string, Failed>()
  // A burst after a start would otherwise ask the database once per request for the same key.
  const lookUps = new Map<string, Promise<Known | undefined>>()
  const used = new Map<string, string | undefined>()

  const load = async (api_key: string): Promise<Known | undefined> => {
    const row = await findCredentialByKeyHash(db, hashKey(api_key))
    // A disabled organization answers as an unknown key.
    if (!row || row.disable_time) return undefined
    const { credential_id, revision } = row
    const secret = sealer.open(row.api_secret_sealed, sealContext('api_secret', credential_id))
    return {
      principal: principalFrom(row),
      secret: secret.toString('utf8'),
      revision: revision ?? 0,
    }
  }

  /** Requests with one key that come together share a look-up. */
  const lookUp = (api_key: string): Promise<Known | undefined> => {
    const running = lookUps.get(api_key)
    if (running) return running
    const started = load(api_key).finally(() => lookUps.delete(api_key))
    lookUps.set(api_key, started)
    return started
  }

  const recentFailure = (api_key: string): Failed | undefined => {
    const entry = failed.get(api_key)
    if (!entry || (entry.until > clock.now() && entry.until <= clock.now() + failedMs)) return entry
    failed.delete(api_key)
    return undefined
  }
  const noteFailure = (api_key: string, known: Known | undefined) => {
    // The first failure counts: later ones do not extend the time.
    if (failed.has(api_key)) return
    if (failed.size >= cacheSize) failed.delete(failed.keys().next().value as string)
    failed.set(api_key, { known, until: clock.now() + failedMs })
  }

  const remember = (api_key: string, known: Known) => {
    if (cache.size >= cacheSize) cache.delete(cache.keys().next().value as string)
    cache.set(api_key, known)
  }

  return {
    async authenticate(request, onSigned) {
      const { api_key, nonce, signature, method, path, body, client } = request
      if (!isKeyShaped(api_key) || !nonce || !signature) throw unauthenticated()
      const cached = cache.get(api_key)
      const isOver = !cached && !failures.take(client)
      const failure = cached || isOver ? undefined : recentFailure(api_key)
      const isForged = !cached && !isOver && !failure && forms?.isForged(api_key) === true
      const isJudged = isOver || isForged || failure !== undefined
      const known =
        cached ?? (isJudged ? failure?.known : await failures.held(client, lookUp(api_key)))
      // An unknown key is checked against an empty secret, so that it costs the same HMAC.
      const mac = createHmac('sha256', known?.secret ?? '')
      mac.update(signedPrefix(nonce, method, path)).update(body)
      const right = sameHex(mac.digest(), signature)
      if (!known || !right) {
        // The same answer for a known key: the answer must not reveal whether a key is known.
        if (isOver || (cached && !failures.take(client)))
          throw await failures.refuse(client, 'operation')
        failures.failed(client, 'operation')
        // A key that was made here costs one look-up in a while when it fails, whether it is known, deleted or
        // disabled: the time reveals nothing either. A made-up key never costs a look-up.
        if (cached && !recentFailure(api_key)) await lookUp(api_key)
        if (!isForged) noteFailure(api_key, known)
        throw unauthenticated()
      }
      // The attempt was taken before the look-up, and it was no failure.
      if (!cached) failures.giveBack(client)
      const now = clock.now()
      const time = nonceTime(nonce)
      if (time === undefined || Math.abs(now - time) > nonceWindowMs) {
        // A cached credential may be deleted by now, and must then get the same answer as an unknown one.
        if ((cached || failure) && !(await lookUp(api_key))) throw unauthenticated()
        throw skewed(now, nonceWindowMs, nonce)
      }
      if (isExpired(known.principal, now)) {
        // The expiry of a cached credential may have been extended.
        const fresh = cached || failure ? await lookUp(api_key) : known
        if (!fresh) throw unauthenticated()
        if (isExpired(fresh.principal, now)) throw expired()
        cache.delete(api_key)
        failed.delete(api_key)
        return await this.authenticate(request, onSigned)
      }
      // A minute longer than it could be accepted: the clocks of replicas differ.
      const expire_time = new Date(time + nonceWindowMs + 60_000)
      const { credential_id } = known.principal
      let isDecided = false
      const { revision } = known
      const use = { credential_id, nonce, time: new Date(time), expire_time, revision }
      const spending = nonces.spend(use)
      // After the tick in which the statement is written: the longest wait begins first. Who is turned away
      // at once, because too many wait already, is not reported at all.
      if (onSigned) process.nextTick(() => !isDecided && onSigned(known.principal))
      let outcome: NonceOutcome
      try {
        outcome = await spending
      } finally {
        isDecided = true
      }
      if (outcome === 'spent') {
        // Kept only after the nonce was stored: that statement has checked that the credential still exists.
        if (!cached) remember(api_key, known)
        used.set(credential_id, client)
        return known.principal
      }
      // Only now is the cause named: the signature was right, so that the caller owns the key.
      if (outcome === 'reused') throw new OperationError('NONCE_REUSED')
      if (outcome === 'unsure') throw recovering()
      cache.delete(api_key)
      failed.delete(api_key)
      // What the credential may do was changed meanwhile: the request is judged once more, by what holds now.
      if (outcome === 'changed') return await this.authenticate(request)
      throw unauthenticated()
    },
    async redeem({ credential_id, nonce, made }) {
      const row = await findCredentialById(db, credential_id)
      if (!row) return undefined
      const principal = principalFrom(row)
      if (isExpired(principal, clock.now())) return undefined
      const outcome = await nonces.spend({
        ...{ credential_id, nonce, time: new Date(made) },
        expire_time: new Date(made + nonceWindowMs + 60_000),
        revision: row.revision ?? 0,
      })
      if (outcome === 'unsure') throw recovering()
      return outcome === 'spent' ? principal : undefined
    },
    takeUsed() {
      const uses = [...used].map(([credential_id, client]) => ({ credential_id, client }))
      used.clear()
      return uses
    },
    forget({ kind }) {
      if (kind === 'credential' || kind === 'organization') failed.clear()
    },
  }
}

/** One body for all: which of the three was wrong is nothing that a stranger should learn. */
export const unauthenticated = (): OperationError =>
  new OperationError('UNAUTHENTICATED', {
    detail:
      'The headers x-api-key, x-api-nonce and x-api-signature must be there, and the signature must be that of the credential.',
  })

/** The nonce may have been spent before a crash or restore that forgot it; one of a later time was not. */
const recovering = () =>
  new OperationError('DATABASE_UNAVAILABLE', {
    detail:
      'The database has come back from a crash or a restore, and the nonce may have been used before it. Sign the request again with the current time.',
    retryAfter: 2,
  })

const skewed = (now: number, windowMs: number, nonce: string) =>
  new OperationError('CLOCK_SKEW', {
    detail: `${/^\d{10}$/.test(nonce) ? 'The nonce is in seconds. ' : ''}The nonce must be the Unix time in 13, 16 or 19 digits, within ${windowMs / 1000} seconds of the server's ${now} ms.`,
    extra: { server_time: String(now) },
  })

/** Only lower-case hex of the right length can match; the comparison itself takes constant time. */
function sameHex(digest: Buffer, signature: string): boolean {
  const given = Buffer.alloc(64)
  given.write(signature.length === 64 ? signature : '', 'latin1')
  return timingSafeEqual(Buffer.from(digest.toString('hex'), 'latin1'), given)
}
