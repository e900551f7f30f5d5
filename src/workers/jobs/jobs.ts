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
 * claim of a dead one comes back by itself.
 */
export function startJobs(options: JobsOptions): { stop(): Promise<void> } {
  const { db, clock, log, network_id, kind, atOnce, pollMs, work } = options
  const stopping = new AbortController()
  const { signal } = stopping

  // Claims and works off one batch; returns how many there were.
  const sweep = async (): Promise<number> => {
    const jobs = await claimJobs(db, { kind, network_id, claimMs, limit: atOnce })
    if (jobs.length === 0) return 0
    const open = new Map(jobs.map((job) => [job, new AbortController()]))
    const done = new AbortController()
    const renewing = renew(open, done.signal)
    try {
      // Waits for all of them, so that a process never holds more claims than `atOnce`.
      await Promise.all(
        [...open].map(([job, lost]) =>
          work(job, AbortSignal.any([signal, lost.signal])).finally(() => open.delete(job)),
        ),
      )
    } finally {
      done.abort()
      await renewing
    }
    return jobs.length
  }

  /** Keeps the claims, and stops work on what another process has taken over. */
  const renew = async (
    open: ReadonlyMap<JobRow, AbortController>,
    ended: AbortSignal,
  ): Promise<void> => {
    while (!ended.aborted) {
      await clock.sleep(renewMs, ended).catch(() => {})
      if (ended.aborted) return
      const mine = [...open]
      const claims = mine.map(([job]) => job)
      const kept = await renewJobs(db, claims, claimMs).catch((error: unknown) => {
        log.warn({ err: error }, 'renewing the claims of jobs failed, will retry')
        return undefined
      })
      for (const [job, lost] of mine)
        if (kept?.has(job.job_id) === false) lost.abort(new Error('the job is worked on elsewhere'))
    }
  }
  const run = async (): Promise<void> => {
    while (!signal.aborted) {
      const done = await sweep().catch((error: unknown) => {
        log.warn({ err: error }, 'claiming jobs failed, will retry')
        return 0
      })
      // Without a pause while there is work; the poll only bounds the delay of new jobs.
      if (done === 0) await clock.sleep(pollMs, signal).catch(() => {})
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
