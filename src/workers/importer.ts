import type { Chain } from '../chains/chain.ts'
import { refreshJobKind, runRefresh } from '../domain/wallets/refresh-job.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import type { Db } from '../storage/database.ts'
import { claimJobs, type JobRow, keepJob } from '../storage/jobs.ts'

/** What an importer is made of. */
export type ImporterOptions = {
  db: Db
  clock: Clock
  log: Log
  chain_id: number
  chain: Chain
  pollMs?: number
}

const claimMs = 60_000
const jobsAtOnce = 4
const lastPauseSeconds = 300

/**
 * Reads the balances that an operation has promised and not read itself. Every process may run one:
 * a job is claimed by one of them, and the claim of a dead one comes back by itself.
 */
export function startImporter(options: ImporterOptions): { stop(): Promise<void> } {
  const { db, clock, log, chain_id, chain, pollMs = 1_000 } = options
  const stopping = new AbortController()
  const { signal } = stopping

  const work = async (job: JobRow): Promise<void> => {
    try {
      await runRefresh({ db, clock, chain, signal }, job)
    } catch (error) {
      const now = clock.now()
      const seconds = signal.aborted ? 0 : Math.min(2 ** job.attempt_count, lastPauseSeconds)
      if (!signal.aborted)
        log.warn({ err: error, job_id: job.job_id, retry_s: seconds }, 'balances not read yet')
      await keepJob(db, job, {
        next_attempt_time: new Date(now + seconds * 1_000),
        last_error: error instanceof Error ? error.message : String(error),
        now: new Date(now),
      }).catch(() => {})
    }
  }

  const sweep = async (): Promise<number> => {
    const now = clock.now()
    const jobs = await claimJobs(db, {
      kind: refreshJobKind,
      chain_id,
      now: new Date(now),
      until: new Date(now + claimMs),
      limit: jobsAtOnce,
    })
    await Promise.all(jobs.map(work))
    return jobs.length
  }

  const run = async (): Promise<void> => {
    while (!signal.aborted) {
      const done = await sweep().catch((error: unknown) => {
        log.warn({ err: error }, 'jobs not claimed, will repeat')
        return 0
      })
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
