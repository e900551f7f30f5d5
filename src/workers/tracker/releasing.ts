import type { Log } from '../../lib/log.ts'
import { inSavepoint } from '../../storage/pg/savepoint.ts'
import { findCursor, lockCursor } from '../../storage/tracking/blocks.ts'
import { assertLease } from '../../storage/tracking/leases.ts'
import { hasConfirmed } from '../../storage/transactions/open.ts'
import { hasSeveralOwners } from '../../storage/wallets/wallets.ts'
import { confirmedPart, confirmLeft } from '../sender/follow.ts'
import { expandPage } from '../webhooks/fan-out.ts'
import { type ReleaseLimits, releaseDue, releaseEach, usualLimits } from './notifications.ts'
import type { TrackerTools } from './tools.ts'

/**
 * The loop that does what the transaction of a block has left: it confirms managed transactions, and writes and releases
 * notifications.
 */
export type Releasing = { wake(): void; stop(): Promise<void> }

const firstPauseMs = 250
const lastPauseMs = 10_000
const pollMs = 5_000
// Where organizations share the service, one has at most so much of a page and this part of the time; blocks, operations and
// deliveries of others have the rest. One with 4,000 webhooks and a transfer in each second otherwise kept the cursor
// locked and the database busy all the time. With pages of 50 and a quarter of the time, transfers of others took twice as
// long as without it (test/security/noisy-neighbour.ts).
const sharedPart = 25
const sharedTime = 0.2
const longestRestMs = 1_000

type Tools = Pick<
  TrackerTools,
  'db' | 'clock' | 'network_id' | 'chain' | 'lease' | 'releaseLimits' | 'fanOutLimits'
>

/** Of how many organizations a page was, whether there is more, and what could not be stored. */
type Page = {
  organizations: number
  isMore: boolean
  failed?: { webhook_history_id: string; error: unknown }[]
}

/** Confirms one page of transactions, expands one page of events and releases one page of what is due at the cursor. */
export async function releasePage(
  tools: Tools,
  part: { perOrganization?: number } = {},
): Promise<Page> {
  const limits = tools.releaseLimits ?? usualLimits
  // In several transactions, so that a block waits for one of them at most.
  const confirmed = await confirmSome(tools, limits, part)
  const expanded = await expandPage(tools, { notifications: limits.notifications, ...part })
  const released = await releaseSome(tools, limits, part)
  const pages = [confirmed, expanded, released]
  return {
    organizations: Math.max(...pages.map(({ organizations }) => organizations)),
    isMore: pages.some(({ isMore }) => isMore),
    ...(released.failed && { failed: released.failed }),
  }
}

async function confirmSome(
  tools: Tools,
  limits: ReleaseLimits,
  { perOrganization = limits.notifications }: { perOrganization?: number },
): Promise<Page> {
  const { db, clock, network_id, lease, fanOutLimits } = tools
  const none = { organizations: 0, isMore: false }
  // Without a lock: a block that leaves something wakes this again.
  const at = await findCursor(db, network_id)
  if (!at || !(await hasConfirmed(db, network_id, at.block_number))) return none
  return await db.transaction().execute(async (trx) => {
    await assertLease(trx, lease.name, lease.epoch)
    const cursor = await lockCursor(trx, network_id)
    if (!cursor) return none
    const part = confirmedPart(limits, perOrganization)
    const context = { network_id, now: new Date(clock.now()), limits: fanOutLimits, part }
    return await confirmLeft(trx, context, cursor.block_number)
  })
}

async function releaseSome(
  tools: Tools,
  limits: ReleaseLimits,
  part: { perOrganization?: number },
): Promise<Page> {
  const { db, clock, network_id, chain, lease } = tools
  return await db.transaction().execute(async (trx) => {
    // The lease and the cursor as for a block: a notification is released against the chain as it
    // is stored, by one process.
    await assertLease(trx, lease.name, lease.epoch)
    const cursor = await lockCursor(trx, network_id)
    if (!cursor) return { organizations: 0, isMore: false }
    const due = { network_id, chain, head: cursor.block_number, now: new Date(clock.now()), limits }
    const page = await inSavepoint(trx, () => releaseDue(trx, due, part))
    return 'value' in page ? page.value : await releaseEach(trx, due, part)
  })
}

/**
 * Releases page after page when it is woken, and once at the beginning, for what a crash has left.
 * Each page has a database transaction of its own, so that blocks are stored in between.
 */
export function startReleasing(options: {
  tools: TrackerTools
  log: Log
  signal: AbortSignal
}): Releasing {
  const { tools, log } = options
  const stopping = new AbortController()
  const signal = AbortSignal.any([options.signal, stopping.signal])
  // One promise for all rests. A listener per rest would collect on a signal that lives for days.
  const aborted = Promise.withResolvers<void>()
  signal.addEventListener('abort', () => aborted.resolve(), { once: true })
  if (signal.aborted) aborted.resolve()
  let woken = Promise.withResolvers<void>()
  let pauseMs = firstPauseMs

  // Another process that stores history may leave events without waking this one.
  const rest = async (): Promise<void> => {
    const resting = new AbortController()
    const pause = tools.clock.sleep(pollMs, resting.signal).catch(() => {})
    await Promise.race([woken.promise, aborted.promise, pause])
    resting.abort()
  }

  const releaseLogged = async (part?: { perOrganization: number }): Promise<Page> => {
    const page = await releasePage(tools, part)
    for (const { webhook_history_id, error } of page.failed ?? [])
      log.error({ err: error, webhook_history_id }, 'a notification cannot be stored, will retry')
    return page
  }

  /** Releases a page, and leaves time to others where there are any. Says whether there is more. */
  const releaseNext = async (): Promise<boolean> => {
    if (!(await hasSeveralOwners(tools.db))) return (await releaseLogged()).isMore
    const begun = tools.clock.now()
    const { organizations, isMore } = await releaseLogged({ perOrganization: sharedPart })
    // The more organizations share the page, the less of the time each of them has already.
    const rests = 1 / (sharedTime * Math.max(1, organizations)) - 1
    const restMs = Math.min(Math.max(0, rests) * (tools.clock.now() - begun), longestRestMs)
    if (isMore && restMs > 0) await tools.clock.sleep(restMs, signal).catch(() => {})
    return isMore
  }

  const run = async (): Promise<void> => {
    while (!signal.aborted) {
      try {
        while (!signal.aborted && (await releaseNext()));
        // The pause starts anew only after a complete pass, so that a failing database is not asked
        // in a tight loop.
        pauseMs = firstPauseMs
        await rest()
        woken = Promise.withResolvers()
      } catch (error) {
        if (signal.aborted) return
        log.warn({ err: error, retry_ms: pauseMs }, 'releasing notifications failed, will retry')
        await tools.clock.sleep(pauseMs, signal).catch(() => {})
        pauseMs = Math.min(pauseMs * 2, lastPauseMs)
      }
    }
  }

  const running = run()
  return {
    wake: () => woken.resolve(),
    stop: async () => {
      stopping.abort()
      await running
    },
  }
}
