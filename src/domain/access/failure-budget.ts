// Guessing of keys is bounded per client address (IPv6: per /64). The budget is taken before the look-up: guesses that
// arrive together cannot pass it, and one address costs the database no more look-ups than its budget allows.

import { OperationError } from '../../contract/errors/errors.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import { clientGroup } from '../../lib/net/ip.ts'

/** What was called with a credential that is not valid. */
export type FailureKind = 'operation' | 'gateway'

/** A failed authentication. */
export type Failure = {
  /** The address that it came from. */
  client: string
  kind: FailureKind
  /** Whether it was refused without a look at the database, because there were too many before. */
  isLimited: boolean
}

/**
 * How many wrong credentials one client may try. A look-up of a credential that is not in memory takes from
 * the budget of its client and gives back when the credential is right, so that guesses which arrive
 * together are counted before the first of them has failed.
 */
export type FailureBudget = {
  /** Takes one attempt; false when none is left. */
  take(client: string): boolean
  giveBack(client: string): void
  /** Gives back when the look-up itself fails: an unreachable database is not a wrong guess. */
  held<found>(client: string, lookUp: Promise<found>): Promise<found>
  /** Reports a wrong credential. */
  failed(client: string, kind: FailureKind): void
  /** Reports an attempt beyond the budget; the error is the answer to it, which is late. */
  refuse(client: string, kind: FailureKind): Promise<OperationError>
}

/** Counts nothing and refuses nothing, for tools that check their own credentials. */
export const unlimitedFailures: FailureBudget = {
  take: () => true,
  giveBack() {},
  held: (_client, lookUp) => lookUp,
  failed() {},
  refuse: async () => new OperationError('TOO_MANY_FAILURES'),
}

/** Refusals that are held back at the same time, at most. */
const maxHeldBack = 10_000

type Bucket = { tokens: number; time: number; isLogged: boolean }

/** Makes the budget: a token bucket for each client, IPv6 clients by their /64. */
export function createFailureBudget(options: {
  clock: Clock
  log: Log
  /** Attempts that a client may make at once. */
  burst: number
  /** Attempts that it gets back every second. */
  perSecond: number
  /**
   * How long a refusal is held back. A client waits for its answers, so this bounds what guessing costs: at once, 64
   * connections had 1,600 refusals a second, a fifth of a core.
   */
  delayMs: number
  /** Clients in memory; the ones that failed longest ago are forgotten first. */
  maxClients?: number
  onFailure?(failure: Failure): void
}): FailureBudget {
  const { clock, log, burst, perSecond, delayMs, maxClients = 20_000, onFailure } = options
  // Holds only clients whose budget is not full, in the order of their last attempt.
  const buckets = new Map<string, Bucket>()
  let heldBack = 0

  const bucketOf = (group: string, now: number): Bucket => {
    const bucket = buckets.get(group) ?? { tokens: burst, time: now, isLogged: false }
    // A clock that was set back gives nothing.
    const seconds = Math.max(0, now - bucket.time) / 1000
    bucket.tokens = Math.min(burst, bucket.tokens + seconds * perSecond)
    bucket.time = now
    if (bucket.tokens === burst) bucket.isLogged = false
    return bucket
  }
  const keep = (group: string, bucket: Bucket) => {
    buckets.delete(group)
    if (bucket.tokens >= burst) return
    if (buckets.size >= maxClients) buckets.delete(buckets.keys().next().value as string)
    buckets.set(group, bucket)
  }

  const giveBack = (client: string) => {
    const group = clientGroup(client)
    const bucket = buckets.get(group)
    if (!bucket) return
    bucket.tokens = Math.min(burst, bucket.tokens + 1)
    if (bucket.tokens === burst) buckets.delete(group)
  }

  return {
    take(client) {
      const group = clientGroup(client)
      const bucket = bucketOf(group, clock.now())
      const isLeft = bucket.tokens >= 1
      if (isLeft) bucket.tokens--
      keep(group, bucket)
      return isLeft
    },
    giveBack,
    held: (client, lookUp) =>
      lookUp.catch((error: unknown) => {
        giveBack(client)
        throw error
      }),
    failed: (client, kind) => onFailure?.({ client, kind, isLimited: false }),
    async refuse(client, kind) {
      onFailure?.({ client, kind, isLimited: true })
      const bucket = buckets.get(clientGroup(client))
      // Once until the budget is full again: the log is not for the attacker to fill.
      if (bucket && !bucket.isLogged) {
        bucket.isLogged = true
        log.warn({ client, kind, burst }, 'too many failed authentications from this address')
      }
      if (delayMs > 0 && heldBack < maxHeldBack) {
        heldBack++
        await clock.sleep(delayMs).finally(() => heldBack--)
      }
      return new OperationError('TOO_MANY_FAILURES', { retryAfter: Math.ceil(1 / perSecond) })
    },
  }
}
