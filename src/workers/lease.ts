// Leases: work that exactly one process does. A lease has an epoch that grows with each holder, and writers
// compare it in their transaction (fencing). A holder that was paused and replaced can therefore not write any
// more.

import { ChainUnavailableError } from '../chains/chain.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import { createOutage } from '../lib/outage.ts'
import type { Db } from '../storage/pg/database.ts'
import { claimLease, LeaseLostError, releaseLease, renewLease } from '../storage/tracking/leases.ts'

/** A lease that is held, as writers name it. */
export type HeldLease = { name: string; epoch: number }

/** What a leased loop needs. */
export type LeasedOptions = {
  db: Db
  clock: Clock
  log: Log
  name: string
  /** An id of this process. */
  holder: string
  /**
   * Does the work until the signal; throwing means to begin again after a pause. `works` says that
   * something was done, so that an earlier failure is over.
   */
  run(lease: HeldLease, signal: AbortSignal, works: () => void): Promise<void>
  ttlMs?: number
  firstPauseMs?: number
  lastPauseMs?: number
}

/** Whether this process does the work now. */
export type LeasedState = 'waiting' | 'leading' | 'failing'

/** A loop of which one runs among all processes. */
export type Leased = {
  state(): LeasedState
  /** The last error and its time, until the work does something again. */
  lastError(): { message: string; time: number } | undefined
  /** Since when it has failed without anything done in between. */
  failingSince(): number | undefined
  stop(): Promise<void>
}

// After its holder died, another process continues within this time and a little more. Shorter, and a database
// that hesitates for two seconds would make leases change hands.
const usualTtlMs = 3_000
// Ends the wait for a lease that was given back early: a planned hand-over takes less than a second.
const longestWaitMs = 500
// Work that has gone on for so long does not fail, even where there was nothing to do.
const worksAfterMs = 10_000
// Claimed a moment after it expires, so that one look is enough.
const afterExpiryMs = 20

/** Runs work in one process at a time: when its holder is silent for `ttlMs`, another takes over. */
export function startLeased(options: LeasedOptions): Leased {
  const { db, clock, log, name, holder, run, ttlMs = usualTtlMs } = options
  const { firstPauseMs = 250, lastPauseMs = 10_000 } = options
  const claim = { name, holder, ttl_ms: ttlMs }
  const stopping = new AbortController()
  let state: LeasedState = 'waiting'
  let failingSince: number | undefined
  let pauseMs = firstPauseMs
  let lastEpoch: number | undefined
  // A lease that is free when the process starts is part of every start; one that another process held is a change.
  let isTakenOver = false
  const outage = createOutage({
    log: withLease(log, name),
    now: clock.now,
    begins: 'leased work failed, will retry',
    ends: 'leased work continues',
    // Unreachable nodes are common; a stack trace does not help.
    isPlain: (error) => error instanceof ChainUnavailableError,
  })
  const renewals = createOutage({
    log: withLease(log, name),
    now: clock.now,
    begins: 'renewing the lease failed, will retry',
    ends: 'the lease is renewed again',
  })
  const works = () => {
    outage.recovered()
    failingSince = undefined
    if (state === 'failing') state = 'leading'
  }

  const pause = (ms: number, signal: AbortSignal) => clock.sleep(ms, signal).catch(() => {})

  // Ends with the reason why the work must stop.
  const keep = async (lease: HeldLease, signal: AbortSignal): Promise<void> => {
    const begun = clock.now()
    let renewed = begun
    while (!signal.aborted) {
      await pause(ttlMs / 3, signal)
      if (signal.aborted) return
      if (clock.now() - begun > worksAfterMs) works()
      const kept = await renewLease(db, { ...claim, ...lease }).catch((error: unknown) => {
        renewals.failed(error)
        return undefined
      })
      if (kept !== undefined) renewals.recovered()
      if (kept) renewed = clock.now()
      // A write of ours would be refused anyway; stopping spares the nodes and the log.
      if (kept === false || clock.now() - renewed > ttlMs)
        throw new LeaseLostError(name, lease.epoch)
    }
  }

  const work = async (lease: HeldLease): Promise<void> => {
    const ending = new AbortController()
    const signal = AbortSignal.any([stopping.signal, ending.signal])
    const running = run(lease, signal, works)
    const keeping = keep(lease, signal)
    try {
      await Promise.race([running, keeping])
    } finally {
      ending.abort()
      await Promise.allSettled([running, keeping])
    }
  }

  const loop = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      try {
        const lease = await claimLease(db, claim)
        if (lease.epoch === undefined) {
          state = 'waiting'
          isTakenOver = true
          await pause(Math.min(lease.remaining_ms + afterExpiryMs, longestWaitMs), stopping.signal)
          continue
        }
        const begun = clock.now()
        // What failed before fails until it has done something.
        if (failingSince === undefined) state = 'leading'
        const held = { name, epoch: lease.epoch }
        if (lease.epoch !== lastEpoch)
          log[isTakenOver ? 'info' : 'debug']({ lease: name, epoch: lease.epoch }, 'lease acquired')
        lastEpoch = lease.epoch
        isTakenOver = true
        try {
          await work(held)
        } finally {
          if (stopping.signal.aborted)
            await releaseLease(db, { name, holder, epoch: lease.epoch }).catch(() => {})
          if (clock.now() - begun > lastPauseMs) pauseMs = firstPauseMs
        }
      } catch (error) {
        if (stopping.signal.aborted) return
        if (error instanceof LeaseLostError) {
          log.warn(
            { reason: error.message, lease: name },
            'lease lost, another process may take over',
          )
          continue
        }
        state = 'failing'
        failingSince ??= clock.now()
        outage.failed(error, { retry_ms: pauseMs })
        await pause(pauseMs, stopping.signal)
        pauseMs = Math.min(pauseMs * 2, lastPauseMs)
      }
    }
  }

  const running = loop()
  return {
    state: () => state,
    lastError: outage.last,
    failingSince: () => failingSince,
    stop: async () => {
      stopping.abort(new Error('stopping'))
      await running
    },
  }
}

const withLease = (log: Log, lease: string): Log => ({
  debug: (fields, message) => log.debug({ lease, ...fields }, message),
  info: (fields, message) => log.info({ lease, ...fields }, message),
  warn: (fields, message) => log.warn({ lease, ...fields }, message),
  error: (fields, message) => log.error({ lease, ...fields }, message),
})
