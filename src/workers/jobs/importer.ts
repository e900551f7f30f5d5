// Background jobs: reading balances, tracking tokens, fetching metadata. They use storage, the chain and the
// handlers of `domain/wallets`, which do the first page of a job before they answer. Jobs are rows: a job
// survives a crash, one process works on it at a time, and organizations take turns.

import type { Chain } from '../../chains/chain.ts'
import { coverJobKind, postponeCover, runCover } from '../../domain/wallets/cover-job.ts'
import { postponeRefresh, refreshJobKind, runRefresh } from '../../domain/wallets/refresh-job.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import type { Db } from '../../storage/pg/database.ts'
import type { JobRow } from '../../storage/tracking/jobs.ts'
import { startJobs } from './jobs.ts'

/** What an importer is made of. */
export type ImporterOptions = {
  db: Db
  clock: Clock
  log: Log
  network_id: number
  chain: Chain
  pollMs?: number
}

// Few at once: jobs share the nodes with the tracker, and each page reads many balances.
const jobsAtOnce = 4
const coversAtOnce = 2

/** Reads the balances that an operation has promised and not read itself. */
export function startImporter(options: ImporterOptions): { stop(): Promise<void> } {
  const { db, clock, log, network_id, chain, pollMs = 1_000 } = options

  const work = async (job: JobRow, signal: AbortSignal): Promise<void> => {
    try {
      // One page: a wallet may have millions of addresses, and others wait for the place.
      await runRefresh({ db, clock, chain, signal, most: { pages: 1 } }, job)
    } catch (error) {
      const pauseMs = await postponeRefresh({ db, signal }, job, error).catch(() => 0)
      if (!signal.aborted)
        log.warn(
          { err: error, job_id: job.job_id, retry_s: pauseMs / 1_000 },
          'balances not read yet',
        )
    }
  }

  const cover = async (job: JobRow, signal: AbortSignal): Promise<void> => {
    try {
      await runCover({ db, clock, chain, signal }, job)
    } catch (error) {
      if (!signal.aborted) log.warn({ err: error, job_id: job.job_id }, 'tokens not tracked yet')
      await postponeCover({ db }, job, error).catch(() => {})
    }
  }

  const shared = { db, clock, log, network_id, pollMs }
  const running = [startJobs({ ...shared, kind: refreshJobKind, atOnce: jobsAtOnce, work })]
  // Only chains on which tokens are imported by name have the second kind.
  if (chain.parseToken)
    running.push(startJobs({ ...shared, kind: coverJobKind, atOnce: coversAtOnce, work: cover }))
  return {
    stop: async () => {
      await Promise.all(running.map((jobs) => jobs.stop()))
    },
  }
}
