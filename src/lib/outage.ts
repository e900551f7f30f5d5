// A dependency that is down fails many times a second. One line per failure would fill the log and hide the others.

import type { Log } from './log.ts'

/** A failure that lasts, in two lines of the log: one when it begins and one when it is over. */
export type Outage = {
  /** Says that an attempt failed. Only the first one of an outage is logged as a warning. */
  failed(error: unknown, fields?: object): void
  /** Says that an attempt succeeded. */
  recovered(): void
  /** The last failure of an outage that lasts. */
  last(): { message: string; time: number } | undefined
}

/** Makes the record of one kind of failure. */
export function createOutage(options: {
  log: Log
  now(): number
  /** The line when it begins, such as `claiming deliveries failed, will retry`. */
  begins: string
  /** The line when it is over. */
  ends: string
  /** Whether the error needs no stack: it is expected, and says all. */
  isPlain?(error: unknown): boolean
}): Outage {
  const { log, now, begins, ends, isPlain = () => false } = options
  let since: number | undefined
  let failures = 0
  let last: { message: string; time: number } | undefined
  return {
    failed(error, fields = {}) {
      const message = messageOf(error)
      last = { message, time: now() }
      failures++
      if (since !== undefined) return log.debug({ reason: message, ...fields }, begins)
      since = last.time
      log.warn({ ...(isPlain(error) ? { reason: message } : { err: error }), ...fields }, begins)
    },
    recovered() {
      if (since === undefined) return
      const seconds = Math.round((now() - since) / 100) / 10
      log.info({ failures, seconds }, ends)
      since = last = undefined
      failures = 0
    },
    last: () => last,
  }
}

const messageOf = (error: unknown): string =>
  error instanceof Error ? error.message : String(error)
