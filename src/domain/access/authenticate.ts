import { createHmac, timingSafeEqual } from 'node:crypto'
import { OperationError } from '../../contract/errors.ts'
import { nonceTime, signedPrefix } from '../../contract/signature.ts'
import { findCredentialByKeyHash } from '../../storage/credentials.ts'
import type { NonceOutcome } from '../../storage/nonces.ts'
import type { Installation, Principal } from '../context.ts'
import { hashKey, isKeyShaped, sealContext } from './credential-keys.ts'
import { type FailureBudget, unlimitedFailures } from './failure-budget.ts'
import type { NonceSpender } from './nonce-spender.ts'

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

/** Checks signed requests (spec 5, docs/decisions.md 2). */
export type Authenticator = {
  /** `onSigned` is told of a right signature while its nonce is not spent yet: no answer may go out. */
  authenticate(
    request: SignedRequest,
    onSigned?: (principal: Principal) => void,
  ): Promise<Principal>
  /** The credentials that were used since this was last asked, for `last_used_time`. */
  takeUsed(): string[]
}

type Known = { principal: Principal; secret: string }

/** Credentials kept in memory; one entry is well under a kilobyte. */
const cacheSize = 10_000

/** Makes the check of the three credentials. */
export function createAuthenticator(
  installation: Installation,
  options: { nonceWindowMs: number; nonces: NonceSpender; failures?: FailureBudget },
): Authenticator {
  const { db, clock, sealer } = installation
  const { nonceWindowMs, nonces, failures = unlimitedFailures } = options
  const cache = new Map<string, Known>()
  const used = new Set<string>()

  const lookUp = async (api_key: string): Promise<Known | undefined> => {
    const row = await findCredentialByKeyHash(db, hashKey(api_key))
    if (!row || row.disable_time) return undefined
    const { credential_id, organization_id, role } = row
    const secret = sealer.open(row.api_secret_sealed, sealContext('api_secret', credential_id))
    return { principal: { credential_id, organization_id, role }, secret: secret.toString('utf8') }
  }

  const remember = (api_key: string, known: Known) => {
    if (cache.size >= cacheSize) cache.delete(cache.keys().next().value as string)
    cache.set(api_key, known)
  }

  return {
    async authenticate({ api_key, nonce, signature, method, path, body, client }, onSigned) {
      if (!isKeyShaped(api_key) || !nonce || !signature) throw unauthenticated()
      const cached = cache.get(api_key)
      const isOver = !cached && !failures.take(client)
      const known = cached ?? (isOver ? undefined : await failures.held(client, lookUp(api_key)))
      // An unknown key is checked against an empty secret, so that it costs the same HMAC.
      const mac = createHmac('sha256', known?.secret ?? '')
      mac.update(signedPrefix(nonce, method, path)).update(body)
      const right = sameHex(mac.digest(), signature)
      if (!known || !right) {
        // The same answer for a known key: whether a key is known is nothing that this may tell.
        if (isOver || (cached && !failures.take(client))) throw failures.refuse(client, 'operation')
        failures.failed(client, 'operation')
        // Every failure has cost one look-up: the time tells nothing about the key either.
        if (cached) await lookUp(api_key)
        throw unauthenticated()
      }
      if (!cached) failures.giveBack(client)
      const now = clock.now()
      const time = nonceTime(nonce)
      if (time === undefined || Math.abs(now - time) > nonceWindowMs) {
        // What is known by heart may be deleted by now, and then deserves no other answer.
        if (cached && !(await lookUp(api_key))) throw unauthenticated()
        throw skewed(now, nonceWindowMs, nonce)
      }
      // A minute longer than it could be accepted: the clocks of replicas differ.
      const expire_time = new Date(time + nonceWindowMs + 60_000)
      const { credential_id } = known.principal
      let isDecided = false
      const spending = nonces.spend({ credential_id, nonce, time: new Date(time), expire_time })
      // After the tick in which the statement is written: the longest wait begins first. Who is turned away
      // at once, because too many wait already, is not told of at all.
      if (onSigned) process.nextTick(() => !isDecided && onSigned(known.principal))
      let outcome: NonceOutcome
      try {
        outcome = await spending
      } finally {
        isDecided = true
      }
      if (outcome === 'spent') {
        if (!cached) remember(api_key, known)
        used.add(credential_id)
        return known.principal
      }
      if (outcome === 'reused') throw new OperationError('NONCE_REUSED')
      if (outcome === 'unsure') throw recovering()
      cache.delete(api_key)
      throw unauthenticated()
    },
    takeUsed() {
      const ids = [...used]
      used.clear()
      return ids
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
