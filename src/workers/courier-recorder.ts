import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import type { Db } from '../storage/database.ts'
import { isDatabaseUnavailable } from '../storage/database-errors.ts'
import { type AttemptRecord, recordAttempts } from '../storage/delivery-records.ts'

const batch = 500
const pauseMs = 250

/**
 * Records attempts, those that end while others are being written together with the next. What the
 * database cannot take now is kept: a lost record would only repeat the delivery, with its id.
 */
export function createRecorder(options: {
  db: Db
  clock: Clock
  log: Log
  /** Some were written: there is room for more. */
  onRecorded(): void
}) {
  const { db, clock, log, onRecorded } = options
  let waiting: AttemptRecord[] = []
  let running: Promise<void> | undefined
  const stopping = new AbortController()

  const store = async (records: readonly AttemptRecord[]): Promise<void> => {
    try {
      const disabled = await recordAttempts(db, records, new Date(clock.now()))
      for (const webhook_id of disabled) log.warn({ webhook_id }, 'webhook disabled')
    } catch (error) {
      if (isDatabaseUnavailable(error)) throw error
      if (records.length === 1) {
        const [{ webhook_history_id } = { webhook_history_id: '' }] = records
        log.error({ err: error, webhook_history_id }, 'attempt not recorded, will be repeated')
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
      const records = waiting.slice(0, batch)
      try {
        await store(records)
        waiting = waiting.slice(records.length)
        onRecorded()
      } catch (error) {
        log.warn({ err: error, attempts: waiting.length }, 'attempts not recorded, will repeat')
        if (stopping.signal.aborted) return
        await clock.sleep(pauseMs, stopping.signal).catch(() => {})
      }
    }
  }

  const flush = (): Promise<void> => {
    running ??= run().finally(() => {
      running = undefined
    })
    return running
  }

  return {
    add: (record: AttemptRecord): void => {
      waiting.push(record)
      void flush()
    },
    waiting: () => waiting.length,
    stop: async (): Promise<void> => {
      stopping.abort()
      await flush()
    },
  }
}
