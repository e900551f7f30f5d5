import type { Clock } from '../../lib/clock.ts'
import type { Db } from '../../storage/pg/database.ts'
import { type JobRow, keepJob } from '../../storage/tracking/jobs.ts'

/** How long a claim lasts before another process may take the job. */
export const keepMs = 4_000

/** The job was restarted, or another process has claimed it. */
class JobLostError extends Error {
  override name = 'JobLostError'
}

/**
 * Works on a job and renews its claim meanwhile: nodes may take longer for a page than a claim lasts,
 * and a second process would read the same. Stops the work and says false when the job is lost.
 */
export async function whileHeld(
  { db, clock, signal }: { db: Db; clock: Clock; signal: AbortSignal },
  job: JobRow,
  work: (signal: AbortSignal) => Promise<void>,
): Promise<boolean> {
  const lost = new AbortController()
  const done = new AbortController()
  const beat = async (): Promise<void> => {
    const both = AbortSignal.any([signal, done.signal])
    while (!both.aborted) {
      // Three renewals per claim, so that one that fails does not lose the job.
      await clock.sleep(keepMs / 3, both).catch(() => {})
      if (both.aborted) return
      // A database that is unreachable for a moment is asked again in time.
      const kept = await keepJob(db, job, { keepMs }).catch(() => true)
      if (!kept) lost.abort(new JobLostError('the job is worked on elsewhere'))
    }
  }
  const beating = beat()
  try {
    await work(AbortSignal.any([signal, lost.signal]))
    return true
  } catch (error) {
    if (error instanceof JobLostError) return false
    throw error
  } finally {
    done.abort()
    await beating
  }
}
