import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import type { JobKind } from '../../storage/access/tables.ts'
import type { Db } from '../../storage/pg/database.ts'
import { claimJobs, type JobRow, renewJobs } from '../../storage/tracking/jobs.ts'

/** What works off the jobs of one kind on one chain. */
export type JobsOptions = {
  db: Db
  clock: Clock
  log: Log
  network_id: number
  kind: JobKind
  /** How many are worked on at once. */
  atOnce: number
  pollMs: number
  /** Ends the job or keeps it for later; never throws. */
  work(job: JobRow, signal: AbortSignal): Promise<void>
}

// After a crash another process takes the job over after this time. While it is worked on, the claim is renewed three times
// within it; a server of a third party may take 15 s.
const claimMs = 4_000
const renewMs = claimMs / 3

/**
 * Works off jobs as they come. Every process may do so: a job is claimed by one of them, and the
 * claim of a dead one comes back by itself. A job that takes long occupies its own place only.
 */
export function startJobs(options: JobsOptions): { stop(): Promise<void> } {
  const { db, clock, log, network_id, kind, atOnce, pollMs, work } = options
  const stopping = new AbortController()
  const { signal } = stopping
  const open = new Set<JobRow>()
  let onEnded = (): void => {}

  const begin = (job: JobRow): void => {
    open.add(job)
    const lost = new AbortController()
    const done = new AbortController()
    const working = work(job, AbortSignal.any([signal, lost.signal]))
    const both = [working.finally(() => done.abort()), renew(job, lost, done.signal)]
    void Promise.allSettled(both).then(() => {
      open.delete(job)
      onEnded()
    })
  }

  /** Keeps the claim, and stops the work when another process has taken the job over. */
  const renew = async (job: JobRow, lost: AbortController, ended: AbortSignal): Promise<void> => {
    while (!ended.aborted) {
      await clock.sleep(renewMs, ended).catch(() => {})
      if (ended.aborted) return
      const kept = await renewJobs(db, [job], claimMs).catch((error: unknown) => {
        log.warn({ err: error }, 'renewing the claim of a job failed, will retry')
        return undefined
      })
      if (kept?.has(job.job_id) === false) lost.abort(new Error('the job is worked on elsewhere'))
    }
  }

  /** Claims and begins jobs for the places that are free. */
  const fill = async (): Promise<void> => {
    const limit = atOnce - open.size
    const jobs = await claimJobs(db, { kind, network_id, claimMs, limit, open: [...open] })
    for (const job of jobs) begin(job)
  }

  /** Waits for the end of a job; where places are free, until the next poll at the latest. */
  const wait = async (ended: Promise<void>): Promise<void> => {
    if (open.size === atOnce) return await ended
    const woken = new AbortController()
    void ended.then(() => woken.abort())
    await clock.sleep(pollMs, AbortSignal.any([signal, woken.signal])).catch(() => {})
  }

  const run = async (): Promise<void> => {
    while (!signal.aborted || open.size > 0) {
      // From before the claim on: a job may end while it runs.
      const { promise: ended, resolve } = Promise.withResolvers<void>()
      onEnded = resolve
      if (signal.aborted) await ended
      else {
        await fill().catch((error: unknown) =>
          log.warn({ err: error }, 'claiming jobs failed, will retry'),
        )
        await wait(ended)
      }
    }
  }
  const running = run()
  return {
    stop: async () => {
      stopping.abort(new Error('stopping'))
      await running
    },
  }
}
