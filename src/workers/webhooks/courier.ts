// Delivery of notifications: the courier claims what is due, sends it and records the attempts; the fan-out
// expands events to one notification per webhook. It uses storage and its own HTTP client, which connects to
// allowed addresses only. It guarantees at-least-once delivery in the order of first attempts, and that a
// failing endpoint does not delay others.

import { setImmediate as nextTurn } from 'node:timers/promises'
import { type Clock, toTimestamp } from '../../lib/clock.ts'
import type { Ids } from '../../lib/ids.ts'
import type { Log } from '../../lib/log.ts'
import { createOutage } from '../../lib/outage.ts'
import type { Span, Tracing } from '../../lib/tracing.ts'
import type { Sealer } from '../../storage/access/seal.ts'
import type { Db } from '../../storage/pg/database.ts'
import { isDatabaseUnavailable } from '../../storage/pg/errors.ts'
import {
  type ClaimedDelivery,
  claimDeliveries,
  releaseClaims,
} from '../../storage/webhooks/delivery-claims.ts'
import type { GuardedFetch } from './guarded-fetch.ts'
import { createHolding } from './holding.ts'
import { createLanes, type LaneLimits, type PendingDelivery } from './lanes.ts'
import { createLook } from './look.ts'
import { createReceivers } from './receivers.ts'
import { createRecorder } from './recorder.ts'
import { send } from './send.ts'
import { type CourierTimings, createTimes } from './times.ts'

/** How to build a courier. */
export type CourierOptions = {
  db: Db
  clock: Clock
  ids: Ids
  sealer: Sealer
  log: Log
  http: GuardedFetch
  /** Continues the traces of blocks. */
  tracing?: Tracing | undefined
  /** For one attempt. */
  timeoutMs: number
  limits: LaneLimits
  /** A claim lasts for one attempt and so much longer; after a crash others wait that long. */
  claimMarginMs?: number
  /** How long a stop waits for what is under way. */
  stopTimeoutMs?: number
  /** The longest time between two polls of the queue, independent of wake-ups. */
  pollMs?: number
}

/** What a courier has done and has to do. */
export type CourierStatus = {
  delivered: number
  failed: number
  in_flight: number
  claimed: number
  /** Attempts that the database does not know of yet. */
  unrecorded: number
  /** Webhooks that have something to send, now or later, of the last look. */
  queued_webhooks: number
  /** How long the oldest due notification has been due. */
  oldest_due_seconds: number
  /** Empty when notifications are claimed again. */
  last_error: string
  last_error_time: string | null
}

/** Delivers due notifications until it is stopped. */
export type Courier = {
  /** Says that something may be due. */
  wake(): void
  status(): CourierStatus
  timings(): CourierTimings
  stop(): Promise<void>
}

// Claims per round. Also the bound of records of one organization that wait for the database, see `roomIn`.
const batch = 500
// A claim of more bytes may have been cut by them: half of what is claimed at most, because the text may be shorter than
// what is stored.
const largeClaim = 2 * 1_048_576
const mostUnrecorded = 3 * batch
const failedPauseMs = 1_000
// Hungry receivers are served together after so long; while much is claimed, which takes longer to send, later.
const gatherMs = 10
const busyGatherMs = 25
// Each takes about 0.1 ms of the thread.
const startsPerTurn = 4
// Between looks at parts of what is queued.
const partPollMs = 50

/** Starts a courier; any number of processes may run one each. */
export function startCourier(options: CourierOptions): Courier {
  const { db, clock, ids, sealer, log, http, timeoutMs, limits, tracing } = options
  const { stopTimeoutMs = timeoutMs, claimMarginMs = 15_000, pollMs = 2_000 } = options
  const stopping = new AbortController()
  // Two signals: the first stops new work, the second one ends requests that outlast
  // `stopTimeoutMs`.
  const aborting = new AbortController()
  const receivers = createReceivers({ db, sealer, log })
  const lanes = createLanes(limits)
  const holding = createHolding({ db, clock, log })
  const recorder = createRecorder({
    ...{ db, clock, log, onDisabled: holding.add },
    onRecorded: () => {
      if (isStarved) wakeSoon()
    },
  })
  const sending = createSending()
  const seen = { delivered: 0, failed: 0, queued_webhooks: 0, oldest_due_seconds: 0 }
  const times = createTimes(clock)
  const queues = createLook(db)
  const outage = createOutage({
    ...{ log, now: clock.now },
    begins: 'claiming deliveries failed, will retry',
    ends: 'deliveries are claimed again',
    isPlain: isDatabaseUnavailable,
  })
  let isWoken = false
  let isStarved = false
  let soon: NodeJS.Timeout | undefined
  let sleeping: AbortController | undefined

  const continueNow = (): void => {
    isWoken = true
    sleeping?.abort()
  }
  const wake = (): void => {
    queues.forget()
    continueNow()
  }
  // Receivers that are hungry within a few milliseconds are served together: claims cost the
  // database much the same whatever their number.
  const wakeSoon = (): void => {
    const waitMs = lanes.held() > batch / 2 ? busyGatherMs : gatherMs
    soon ??= setTimeout(() => {
      soon = undefined
      continueNow()
    }, waitMs)
  }
  // From the ids of the installation, so that tests can fix the jitter.
  const random = (): number => ids.bytes(4).readUInt32BE() / 0xffff_ffff

  /**
   * Sends a delivery and those that follow it; never throws. One turn later, and all of them, so that they keep their order:
   * undici uses a connection again one turn after its answer. At once, the next delivery would take another connection, which
   * cost 6 % of the CPU of a delivery.
   */
  const start = (delivery: PendingDelivery): void => {
    sending.begin()
    setImmediate(attempt, delivery)
  }

  const attempt = (delivery: PendingDelivery): void => {
    deliver(delivery).then(sending.end, (error: unknown) => {
      log.error({ err: error, ...idsOf(delivery) }, 'internal delivery error, will retry')
      sending.end()
    })
  }

  const deliver = async (delivery: PendingDelivery): Promise<void> => {
    const begun = performance.now()
    const span = tracing && beginSpan(tracing, delivery)
    let isWell: boolean | undefined
    try {
      // It waited here for so long that another courier could have it before an answer came.
      const isLate = delivery.claim.claim_expire_time.getTime() - clock.now() < timeoutMs
      const signal = aborting.signal
      const record = isLate
        ? undefined
        : await send(delivery, { http, clock, timeoutMs, random, signal, span })
      if (record) {
        isWell = record.is_delivered
        seen[isWell ? 'delivered' : 'failed']++
        times.measure(delivery, { isWell, begun, trace_id: span?.trace_id })
        recorder.add(record)
      } else {
        // Late or stopped: not an attempt, so nothing is recorded and the retries are not used up.
        await giveBack([delivery], options)
        wake()
      }
    } finally {
      const durationMs = performance.now() - begun
      span?.end({ delivered: isWell })
      const { next, dropped, isHungry } = lanes.finish(delivery, {
        isWell,
        durationMs,
        now: clock.now(),
      })
      // While stopping, what would be sent next is given back for other processes.
      if (stopping.signal.aborted) dropped.push(...next)
      else for (const one of next) start(one)
      if (dropped.length > 0) await giveBack(dropped, options)
      if (isHungry || dropped.length > 0) wakeSoon()
    }
  }

  /** Claims and starts what is due, and says when to look again. */
  const collect = async (): Promise<number> => {
    const now = clock.now()
    const { queued, isPart } = await queues.look(now)
    const open = queued.filter(({ webhook_id }) => !holding.has(webhook_id))
    const due = open.filter(({ first_time }) => first_time.getTime() <= now)
    const later = open.filter(({ first_time }) => first_time.getTime() > now)
    const times = due.map(({ first_time }) => first_time.getTime())
    seen.queued_webhooks = queued.length
    seen.oldest_due_seconds = Math.max(0, now - Math.min(now, ...times)) / 1000
    isStarved = due.length > 0 && recorder.waiting() > batch / 2
    const wanted = lanes.plan(due, now, roomIn(recorder))
    if (wanted.length > 0) {
      const expire = new Date(now + timeoutMs + claimMarginMs)
      const claims = await claimDeliveries(db, wanted, { now: new Date(now), expire })
      const { ready, lost } = await receiversOf(claims, receivers, now)
      const isAll = claims.length === wanted.reduce((sum, { count }) => sum + count, 0)
      const isCut = !isAll && isLarge(claims, wanted)
      await startInTurns(lanes.add(ready, wanted, { isCut }), start)
      if (lost.length > 0) {
        await giveBack(lost, options)
        holding.add(disabledOf(lost))
      }
      if (isAll) queues.keep()
      // Fewer because of their bytes: the next ones come at once.
      else if (isCut) return now
      // More than fit into one claim: the others come at once.
      if (wanted.length < due.length && claims.length > 0) return now
    }
    return Math.min(
      now + (isPart ? partPollMs : pollMs),
      lanes.resumeTime(due, now),
      ...later.map(({ first_time }) => first_time.getTime()),
    )
  }

  const sleepUntil = async (time: number): Promise<void> => {
    if (isWoken || stopping.signal.aborted) return
    sleeping = new AbortController()
    await clock.sleep(Math.max(0, time - clock.now()), sleeping.signal).catch(() => {})
    sleeping = undefined
  }

  const run = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      isWoken = false
      const next = await collect().then(
        (time) => {
          outage.recovered()
          return time
        },
        (error: unknown) => {
          outage.failed(error, { retry_ms: failedPauseMs })
          isWoken = false
          return clock.now() + failedPauseMs
        },
      )
      await sleepUntil(next)
    }
  }
  const running = run()

  return {
    wake,
    status: () => {
      const error = outage.last()
      return {
        ...seen,
        in_flight: lanes.open(),
        claimed: lanes.held(),
        unrecorded: recorder.waiting(),
        last_error: error?.message ?? '',
        last_error_time: error ? toTimestamp(error.time) : null,
      }
    },
    timings: times.read,
    // First no new claims, then give back what is not being sent, then wait for what is, and record
    // it last.
    stop: async () => {
      stopping.abort()
      sleeping?.abort()
      clearTimeout(soon)
      await running
      await giveBack(lanes.drain(), options)
      const timer = setTimeout(() => aborting.abort(), stopTimeoutMs)
      await sending.ended()
      clearTimeout(timer)
      await recorder.stop()
      await holding.stop()
    },
  }
}

/** Claims with what they are sent to, and those whose webhook is removed or disabled since, or cannot be read. */
async function receiversOf(
  claims: readonly ClaimedDelivery[],
  receivers: Pick<ReturnType<typeof createReceivers>, 'load'>,
  now: number,
) {
  const webhooks = [...new Set(claims.map(({ webhook_id }) => webhook_id))]
  const known = webhooks.length > 0 ? await receivers.load(webhooks, now) : undefined
  const deliveries = claims.map((claim) => ({ claim, receiver: known?.get(claim.webhook_id) }))
  const ready = deliveries.filter(
    (one): one is PendingDelivery => one.receiver?.is_enabled === true,
  )
  return { ready, lost: deliveries.filter(({ receiver }) => !receiver?.is_enabled) }
}

/** Counts what is being sent, which a stop waits for: a set of promises costs each delivery more. */
function createSending() {
  let count = 0
  let onNone = (): void => {}
  return {
    begin: () => void count++,
    end: () => {
      count--
      if (count === 0) onNone()
    },
    ended: async (): Promise<void> => {
      const none = Promise.withResolvers<void>()
      onNone = none.resolve
      if (count > 0) await none.promise
    },
  }
}

/**
 * How much may be claimed. What the database cannot take in is not sent out either, and one organization that fills it
 * leaves room for others.
 */
const roomIn = ({ waiting }: Pick<ReturnType<typeof createRecorder>, 'waiting'>) => ({
  room: Math.min(batch, Math.max(0, mostUnrecorded - waiting())),
  roomFor: (organization_id: string) => Math.max(0, batch - waiting(organization_id)),
})

/**
 * Starts some at a time: requests of users are answered in between. Never ends a turn within a webhook: the end of one that
 * was started starts the next of its queue, which would overtake the others.
 */
async function startInTurns(
  deliveries: readonly PendingDelivery[],
  start: (delivery: PendingDelivery) => unknown,
): Promise<void> {
  let started = 0
  let last: string | undefined
  for (const delivery of deliveries) {
    const { webhook_id } = delivery.claim
    if (started >= startsPerTurn && webhook_id !== last) {
      started = 0
      await nextTurn()
    }
    start(delivery)
    started++
    last = webhook_id
  }
}

/** Begins the span of a delivery. Only deliveries about a block have a trace to continue; `blockSpan` decides whether it is traced. */
function beginSpan(tracing: Tracing, { claim }: PendingDelivery): Span | undefined {
  const { network_id, block_number, webhook_id, webhook_history_id, retry_step } = claim
  if (network_id === undefined || block_number == null) return undefined
  const below = tracing.blockSpan(network_id, block_number)
  const ids = {
    'portolan.webhook_id': webhook_id,
    'portolan.webhook_history_id': webhook_history_id,
  }
  const fields = { ...ids, 'portolan.retry': retry_step }
  return below && tracing.begin({ name: 'deliver', below, fields })
}

/** Whether the part of an organization may have been cut by its bytes. */
function isLarge(
  claims: readonly ClaimedDelivery[],
  wanted: readonly { organization_id: string }[],
): boolean {
  const organizations = new Set(wanted.map(({ organization_id }) => organization_id)).size
  return Map.groupBy(claims, ({ organization_id }) => organization_id)
    .values()
    .some(
      (mine) => mine.reduce((sum, { data }) => sum + data.length, 0) > largeClaim / organizations,
    )
}

const idsOf = ({ claim: { webhook_id, webhook_history_id } }: PendingDelivery) => ({
  webhook_id,
  webhook_history_id,
})

/** The webhooks that were disabled elsewhere, or by a change that broke off; others cannot be read. */
const disabledOf = (lost: readonly { claim: ClaimedDelivery; receiver: unknown }[]): string[] =>
  lost.filter(({ receiver }) => receiver).map(({ claim }) => claim.webhook_id)

/** Claims expire by themselves. Giving them back only shortens the wait of another process. */
async function giveBack(
  deliveries: readonly Pick<PendingDelivery, 'claim'>[],
  { db, log }: Pick<CourierOptions, 'db' | 'log'>,
): Promise<void> {
  const claims = deliveries.map(({ claim }) => claim)
  await releaseClaims(db, claims).catch((error: unknown) =>
    log.warn({ err: error }, 'releasing claims failed, they will expire'),
  )
}
