import { setTimeout as delay } from 'node:timers/promises'
import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import type { Db } from '../../storage/pg/database.ts'
import { isDatabaseUnavailable, isUniqueViolation } from '../../storage/pg/errors.ts'
import { type AttemptRecord, recordAttempts } from '../../storage/webhooks/delivery-records.ts'

// Attempts of one statement. The courier claims less while many wait here (`waiting`).
const batch = 500
const pauseMs = 250
// Writing a hundred attempts costs the database little more than writing one.
const gatherMs = 20

const organizationOf = ({ organization_id }: AttemptRecord): string => organization_id

/**
 * Records attempts together that end within a few milliseconds, or while others are being written.
 * What the database cannot take now is kept: a lost record would only repeat the delivery, with its id.
 */
export function createRecorder(options: {
  db: Db
  clock: Clock
  log: Log
  /** Some were written: there is room for more. */
  onRecorded(): void
  /** Webhooks were disabled: what is queued for them is to be held back. */
  onDisabled(webhook_ids: readonly string[]): void
}) {
  const { db, clock, log, onRecorded, onDisabled } = options
  let waiting: AttemptRecord[] = []
  const counts = new Map<string, { waiting: number }>()
  let running: Promise<void> | undefined
  const stopping = new AbortController()

  const noteStored = (records: readonly AttemptRecord[]): void => {
    for (const [organization_id, { length }] of Map.groupBy(records, organizationOf)) {
      const count = counts.get(organization_id)!
      count.waiting -= length
      if (count.waiting === 0) counts.delete(organization_id)
    }
  }

  const store = async (records: readonly AttemptRecord[], repeats = 3): Promise<void> => {
    try {
      const disabled = await recordAttempts(db, records, new Date(clock.now()))
      for (const webhook_id of disabled) log.warn({ webhook_id }, 'webhook disabled')
      if (disabled.length > 0) onDisabled(disabled)
    } catch (error) {
      if (isDatabaseUnavailable(error)) throw error
      // Two couriers numbered an attempt alike: what the other one wrote is there now.
      if (isUniqueViolation(error) && repeats > 0) return await store(records, repeats - 1)
      // Alone and still refused: it is dropped here, its claim expires and the delivery is
      // attempted again with the same id.
      if (records.length === 1) {
        const [{ webhook_history_id } = { webhook_history_id: '' }] = records
        log.error({ err: error, webhook_history_id }, 'recording an attempt failed, will retry')
        return
      }
      // One bad record must not keep the others from being written.
      const middle = Math.ceil(records.length / 2)
      await store(records.slice(0, middle))
      await store(records.slice(middle))
    }
  }

  const run = async (): Promise<void> => {
    while (waiting.length > 0) {
      await delay(gatherMs, undefined, { signal: stopping.signal }).catch(() => {})
      // Not removed before they are stored: a failure leaves them in their order.
      const records = waiting.slice(0, batch)
      try {
        await store(records)
        waiting = waiting.slice(records.length)
        noteStored(records)
        onRecorded()
      } catch (error) {
        log.warn({ err: error, attempts: waiting.length }, 'recording attempts failed, will retry')
        if (stopping.signal.aborted) return
        await clock.sleep(pauseMs, stopping.signal).catch(() => {})
      }
    }
  }

  // One writer at a time; what is added meanwhile is taken by its next round.
  const flush = (): Promise<void> => {
    running ??= run().finally(() => {
      running = undefined
    })
    return running
  }

  return {
    add: (record: AttemptRecord): void => {
      waiting.push(record)
      const count = counts.get(record.organization_id)
      if (count) count.waiting++
      else counts.set(record.organization_id, { waiting: 1 })
      void flush()
    },
    /** Of all organizations, or of one. */
    waiting: (organization_id?: string): number =>
      organization_id === undefined ? waiting.length : (counts.get(organization_id)?.waiting ?? 0),
    stop: async (): Promise<void> => {
      stopping.abort()
      await flush()
    },
  }
}
