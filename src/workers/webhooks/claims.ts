import { setTimeout as delay } from 'node:timers/promises'
import type { Log } from '../../lib/log.ts'
import type { Db } from '../../storage/pg/database.ts'
import {
  type ClaimedDelivery,
  claimDeliveries,
  releaseClaims,
  renewDeliveries,
} from '../../storage/webhooks/delivery-claims.ts'
import type { AttemptRecord } from '../../storage/webhooks/delivery-records.ts'

/** What this process has claimed. */
export type Claims = {
  /** Claims what is due, in the order of first attempts. */
  take(wanted: Parameters<typeof claimDeliveries>[1], now: number): Promise<ClaimedDelivery[]>
  /** Whether no other process can have a delivery. */
  holds(claim: ClaimedDelivery): boolean
  /** Forgets claims that are over or are recorded. */
  end(claims: readonly Pick<ClaimedDelivery, 'webhook_history_id'>[]): void
  /** Gives claims back. Never throws: claims expire by themselves, and this only shortens the wait of another process. */
  release(claims: readonly ClaimedDelivery[]): Promise<void>
  /** Writes the claims as they are now into records that are about to be stored, and does not renew them until `stored`. */
  settle(records: readonly AttemptRecord[]): Promise<Settled>
  stop(): Promise<void>
}

/** Claims whose results are being stored. */
export type Settled = { stored(): void; failed(): void }

// After its process died, another one continues within this time and the pause of `courier.ts` between two looks at what
// another process has. Longer than a lease (3 s), because a claim that is lost repeats deliveries.
const claimMs = 3_500
// Two renewals may fail before a claim is lost.
const renewMs = 1_000
// Younger claims are not renewed: most deliveries end before, and cost no renewal.
const freshMs = 500

type Held = { claim: ClaimedDelivery; until: number; isBeingStored: boolean }

/**
 * The claims of a courier, and one statement each second that renews those of deliveries that take longer. Times are those of
 * `performance.now()`, from before the statement began: the server's claim ends later, and a clock that is set does not move them.
 */
export function createClaims({ db, log }: { db: Db; log: Log }): Claims {
  const held = new Map<string, Held>()
  const stopping = new AbortController()
  let renewing: Promise<void> | undefined

  const renew = async (): Promise<void> => {
    const begun = performance.now()
    const due = [...held.values()].filter(
      ({ until, isBeingStored }) => !isBeingStored && until - begun < claimMs - freshMs,
    )
    if (due.length === 0) return
    const claims = due.map(({ claim }) => claim)
    const byId = new Map(due.map((one) => [one.claim.webhook_history_id, one]))
    // What was not renewed may be locked for a moment: it is tried again, and lost when its time is over.
    for (const { webhook_history_id, claim_expire_time } of await renewDeliveries(
      db,
      claims,
      claimMs,
    ))
      extend(byId.get(webhook_history_id)!, claim_expire_time, begun)
  }

  const extend = (one: Held, claim_expire_time: Date, begun: number): void => {
    one.claim.claim_expire_time = claim_expire_time
    one.until = begun + claimMs
  }

  const run = async (): Promise<void> => {
    const { signal } = stopping
    while (!signal.aborted) {
      await delay(renewMs, undefined, { signal }).catch(() => {})
      if (signal.aborted) return
      renewing = renew().catch((error: unknown) =>
        log.warn({ err: error }, 'renewing the claims of deliveries failed, will retry'),
      )
      await renewing
      renewing = undefined
    }
  }
  const running = run()

  return {
    take: async (wanted, now) => {
      const begun = performance.now()
      const rows = await claimDeliveries(db, wanted, { now: new Date(now), claimMs })
      return rows.filter((claim) => {
        const known = held.get(claim.webhook_history_id)
        // Its claim was over while the database could not be reached, and it is still on its way: it is not sent twice.
        if (known && !known.isBeingStored) {
          extend(known, claim.claim_expire_time, begun)
          return false
        }
        const until = begun + claimMs
        held.set(claim.webhook_history_id, { claim, until, isBeingStored: false })
        return true
      })
    },
    holds: ({ webhook_history_id }) => {
      const one = held.get(webhook_history_id)
      return one !== undefined && one.until > performance.now()
    },
    end: (claims) => {
      for (const { webhook_history_id } of claims) held.delete(webhook_history_id)
    },
    release: async (claims) => {
      if (claims.length === 0) return
      for (const { webhook_history_id } of claims) held.delete(webhook_history_id)
      // It changes the times by which the claims are known.
      await renewing
      await releaseClaims(db, claims).catch((error: unknown) =>
        log.warn({ err: error }, 'releasing claims failed, they will expire'),
      )
    },
    settle: async (records) => {
      await renewing
      const settled: Held[] = []
      for (const record of records) {
        const one = held.get(record.webhook_history_id)
        if (!one) continue
        record.claim_expire_time = one.claim.claim_expire_time
        one.isBeingStored = true
        settled.push(one)
      }
      return {
        stored: () => {
          for (const one of settled)
            if (held.get(one.claim.webhook_history_id) === one)
              held.delete(one.claim.webhook_history_id)
        },
        failed: () => {
          for (const one of settled) one.isBeingStored = false
        },
      }
    },
    stop: async () => {
      stopping.abort()
      await running
    },
  }
}
