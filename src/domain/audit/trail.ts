// The audit trail of operations: the event of a change is written in the transaction of the change. It uses
// `storage/audit`. It guarantees that no change commits without its event, and that a flood of refused requests
// is summed up instead of stored one by one.

import { onlyShows } from '../../contract/access.ts'
import { OperationError } from '../../contract/errors/errors.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Ids } from '../../lib/ids.ts'
import type { Log } from '../../lib/log.ts'
import { putPendingEvents } from '../../storage/audit/audit.ts'
import type { PendingAuditRow } from '../../storage/audit/tables.ts'
import type { Db } from '../../storage/pg/database.ts'
import {
  type AuditEnd,
  type AuditSubject,
  type Concerned,
  type Concerns,
  endEvent,
  makeEvent,
} from './event.ts'
import { createTally } from './tally.ts'

/** Records what is done, and what is refused. */
export type AuditTrail = {
  /**
   * Does a change. Its event is stored before it begins; its result soon after it ended. The event of an
   * operation that only shows a secret is on disk before it begins, because no change commits after it.
   */
  perform<result>(
    subject: AuditSubject,
    work: (concerns: Concerns) => Promise<result>,
  ): Promise<result>
  /** Records that a stored answer is given again. The event is on disk when this returns: the answer may show a secret. */
  replayed(subject: AuditSubject, answer: unknown): Promise<void>
  /** Counts a refusal of a known caller, by minute. */
  refused(subject: AuditSubject, reason: string): void
  /** Counts a failed authentication, by client address and minute. */
  unauthenticated(client: string, service: string, reason: string): void
  /** Stores what is still in memory. */
  stop(): Promise<void>
}

/** How the trail is written. */
export type AuditTrailOptions = {
  db: Db
  clock: Clock
  ids: Ids
  log: Log
  /** How long results may wait to be stored together. */
  delayMs?: number
  maxBatch?: number
  maxWaiting?: number
}

type Waiting = {
  row: PendingAuditRow
  durable: boolean
  resolve(): void
  reject(error: unknown): void
}

/** Makes the trail of one process. */
export function createAuditTrail(options: AuditTrailOptions): AuditTrail {
  const { db, clock, ids, log, delayMs = 100, maxBatch = 500, maxWaiting = 10_000 } = options
  // Events wait here until they are stored, because their operations may not begin before. Results
  // need not be waited for.
  const waiting: Waiting[] = []
  // By event, so that a later result of the same event replaces the earlier one.
  const results = new Map<string, PendingAuditRow>()
  const stopping = new AbortController()
  let isWriting = false

  // Events that arrive while a statement is under way share the next one.
  const write = async (): Promise<void> => {
    isWriting = true
    while (waiting.length > 0) {
      const batch = waiting.splice(0, maxBatch)
      try {
        await putPendingEvents(
          db,
          batch.map(({ row }) => row),
          // One durable event makes the whole batch durable; that costs the others one wait for the
          // disk.
          { durable: batch.some(({ durable }) => durable) },
        )
        for (const { resolve } of batch) resolve()
      } catch (error) {
        for (const { reject } of batch) reject(error)
      }
    }
    isWriting = false
  }

  const begin = (row: PendingAuditRow, durable: boolean): Promise<void> =>
    new Promise((resolve, reject) => {
      if (waiting.length >= maxWaiting)
        return reject(new OperationError('DATABASE_UNAVAILABLE', { retryAfter: 1 }))
      waiting.push({ row, durable, resolve, reject })
      if (!isWriting) void write()
    })

  const note = (row: PendingAuditRow): void => {
    // Without its result an event is chained as unknown: a database that is unreachable for long costs no memory.
    if (results.size < maxWaiting) results.set(row.event_id, row)
  }

  const flush = async (): Promise<void> => {
    while (results.size > 0) {
      const batch = results.values().take(maxBatch).toArray()
      await putPendingEvents(db, batch)
      // A newer result of the same event may have been noted while the statement ran.
      for (const row of batch) if (results.get(row.event_id) === row) results.delete(row.event_id)
    }
  }

  const tally = createTally({ clock, make: (subject) => makeEvent({ clock, ids }, subject) })

  const run = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      await clock.sleep(delayMs, stopping.signal).catch(() => {})
      for (const row of tally.takeEnded()) note(row)
      await flush().catch((error: unknown) =>
        log.warn({ err: error }, 'storing audit results failed, will retry'),
      )
    }
  }
  const running = run()

  return {
    async perform(subject, work) {
      const event = makeEvent({ clock, ids }, subject)
      await begin(event, onlyShows(subject.operation))
      const { answer, end } = await runNoting(work)
      note(endEvent(event, subject, end))
      return answer()
    },
    async replayed(subject, answer) {
      const event = makeEvent({ clock, ids }, subject)
      const ended = endEvent(event, subject, { result: 'AUDIT_RESULT_SUCCEEDED', answer })
      await begin({ ...ended, reason: 'REPLAYED' }, true)
    },
    refused: tally.refused,
    unauthenticated: tally.unauthenticated,
    async stop() {
      stopping.abort()
      await running
      for (const row of tally.takeAll()) note(row)
      // Last attempt: what fails here is chained as unknown later.
      await flush().catch((error: unknown) => log.warn({ err: error }, 'audit results not stored'))
    },
  }
}

/**
 * Does a change of the command line: event and result are stored one after the other, because the process ends
 * when it is done. The event is on disk before the change begins.
 */
export async function performAudited<result>(
  tools: { db: Db; clock: Clock; ids: Ids },
  subject: AuditSubject,
  work: (concerns: Concerns) => Promise<result>,
): Promise<result> {
  const event = makeEvent(tools, subject)
  await putPendingEvents(tools.db, [event], { durable: true })
  const { answer, end } = await runNoting(work)
  await putPendingEvents(tools.db, [endEvent(event, subject, end)])
  return answer()
}

/** Runs a change to its end, whichever that is, and keeps what it turned out to concern. */
async function runNoting<result>(
  work: (concerns: Concerns) => Promise<result>,
): Promise<{ answer: () => result; end: AuditEnd }> {
  let concerned: Concerned | undefined
  try {
    // The two fields only: a row that is handed over has its sealed key beside them.
    const answer = await work(({ organization_id, credential_id }) => {
      concerned = { organization_id, credential_id }
    })
    return {
      answer: () => answer,
      end: { result: 'AUDIT_RESULT_SUCCEEDED', answer, concerned },
    }
  } catch (error) {
    const fail = () => {
      throw error
    }
    return { answer: fail, end: { result: 'AUDIT_RESULT_FAILED', error, concerned } }
  }
}
