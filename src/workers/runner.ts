import { ChainUnavailableError } from '../chains/chain.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import type { Db } from '../storage/database.ts'
import { acquireLease, LeaseLostError, releaseLease, renewLease } from '../storage/leases.ts'

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
  /** Does the work until the signal; throwing means to begin again after a pause. */
  run(lease: HeldLease, signal: AbortSignal): Promise<void>
  ttlMs?: number
  firstPauseMs?: number
  lastPauseMs?: number
}

/** Whether this process does the work now. */
export type LeasedState = 'waiting' | 'leading' | 'failing'

/** A loop of which one runs among all processes. */
export type Leased = {
  state(): LeasedState
  lastError(): unknown
  stop(): Promise<void>
}

/** Runs work in one process at a time: when its holder is silent for `ttlMs`, another takes over. */
export function startLeased(options: LeasedOptions): Leased {
  const { db, clock, log, name, holder, run, ttlMs = 10_000 } = options
  const { firstPauseMs = 250, lastPauseMs = 10_000 } = options
  const claim = { name, holder, ttl_ms: ttlMs }
  const stopping = new AbortController()
  let state: LeasedState = 'waiting'
  let lastError: unknown
  let pauseMs = firstPauseMs

  const pause = (ms: number, signal: AbortSignal) => clock.sleep(ms, signal).catch(() => {})

  // Ends with the reason why the work must stop.
  const keep = async (lease: HeldLease, signal: AbortSignal): Promise<void> => {
    let renewed = clock.now()
    while (!signal.aborted) {
      await pause(ttlMs / 3, signal)
      if (signal.aborted) return
      const kept = await renewLease(db, { ...claim, ...lease }).catch((error: unknown) => {
        log.warn({ err: error, lease: name }, 'lease not renewed, will repeat')
        return undefined
      })
      if (kept) renewed = clock.now()
      // A write of ours would be refused anyway; stopping spares the nodes and the log.
      if (kept === false || clock.now() - renewed > ttlMs)
        throw new LeaseLostError(name, lease.epoch)
    }
  }

  const work = async (lease: HeldLease): Promise<void> => {
    const ending = new AbortController()
    const signal = AbortSignal.any([stopping.signal, ending.signal])
    const running = run(lease, signal)
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
        const lease = await acquireLease(db, claim)
        if (!lease) {
          state = 'waiting'
          await pause(ttlMs / 3, stopping.signal)
          continue
        }
        const begun = clock.now()
        state = 'leading'
        const held = { name, epoch: lease.epoch }
        try {
          await work(held)
        } finally {
          if (stopping.signal.aborted)
            await releaseLease(db, { name, holder, epoch: lease.epoch }).catch(() => {})
          if (clock.now() - begun > lastPauseMs) pauseMs = firstPauseMs
        }
      } catch (error) {
        if (stopping.signal.aborted) return
        state = 'failing'
        lastError = error
        // Nodes that are away are daily life; where in the code that was noticed helps nobody.
        const why =
          error instanceof ChainUnavailableError ? { reason: error.message } : { err: error }
        log.warn({ ...why, lease: name, retry_ms: pauseMs }, 'leased work failed, will repeat')
        await pause(pauseMs, stopping.signal)
        pauseMs = Math.min(pauseMs * 2, lastPauseMs)
      }
    }
  }

  const running = loop()
  return {
    state: () => state,
    lastError: () => lastError,
    stop: async () => {
      stopping.abort(new Error('stopping'))
      await running
    },
  }
}
