import type { Chain } from '../../chains/chain.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import type { Db } from '../../storage/pg/database.ts'
import { finishJob, type JobRow, keepJob } from '../../storage/tracking/jobs.ts'
import {
  findItem,
  metadataJobKind,
  setTokenMetadata,
} from '../../storage/wallets/token-metadata.ts'
import { GuardedFetchError } from '../webhooks/guarded-exchange.ts'
import { startJobs } from './jobs.ts'
import { fetchTokenData, type TokenDataTools } from './token-data.ts'

/** What the worker is made of. */
export type TokenMetadataOptions = TokenDataTools & {
  db: Db
  clock: Clock
  log: Log
  network_id: number
  chain: Chain
  pollMs?: number
  firstPauseMs?: number
}

// Most of the time goes into waiting for servers of third parties, so more at once than for other jobs.
const jobsAtOnce = 8
// With pauses that double from five seconds this is about three hours.
const mostAttempts = 12
const lastPauseMs = 6 * 3_600_000

/**
 * Looks for what items of collections say of themselves: the URI from the contract, then the JSON
 * behind it (docs/decisions/transfers.md).
 */
export function startTokenMetadata(options: TokenMetadataOptions): { stop(): Promise<void> } {
  const { db, clock, log, network_id, chain, pollMs = 1_000, firstPauseMs = 5_000 } = options
  const readUris = chain.tokens?.readTokenUris
  if (!readUris) return { stop: async () => {} }

  const describe = async (job: JobRow, signal: AbortSignal) => {
    const asset = await findItem(db, job.job_id)
    if (!asset) return
    const [token_uri = null] = await readUris([asset], signal)
    // Shown at once: the JSON behind it may take long, or never come.
    if (token_uri !== asset.token_uri) await setTokenMetadata(db, job.job_id, { token_uri })
    const token_data = token_uri ? await fetchTokenData(token_uri, options, signal) : undefined
    await setTokenMetadata(db, job.job_id, {
      ...(token_data !== undefined && { token_data }),
      metadata_time: new Date(clock.now()),
    })
  }

  const work = async (job: JobRow, signal: AbortSignal): Promise<void> => {
    try {
      await describe(job, signal)
      await finishJob(db, job)
    } catch (error) {
      // An attempt that was interrupted says nothing of the item.
      const isLast = !signal.aborted && (job.attempt_count >= mostAttempts || isForbidden(error))
      const pauseMs = Math.min(firstPauseMs * 2 ** (job.attempt_count - 1), lastPauseMs)
      const last_error = error instanceof Error ? error.message : String(error)
      // A wrong URI in a contract is not a problem of the operator.
      log.debug(
        { err: error, asset_id: job.job_id, is_last: isLast },
        'token metadata not available',
      )
      if (isLast) await giveUp(job).catch(() => {})
      else
        await keepJob(db, job, { keepMs: signal.aborted ? 0 : pauseMs, last_error }).catch(() => {})
    }
  }
  // The time is set without data, so that the item is not looked up again.
  const giveUp = async (job: JobRow): Promise<void> => {
    await setTokenMetadata(db, job.job_id, { metadata_time: new Date(clock.now()) })
    await finishJob(db, job)
  }

  const kind = metadataJobKind
  return startJobs({ db, clock, log, network_id, kind, atOnce: jobsAtOnce, pollMs, work })
}

/** A forbidden address stays forbidden: no retry. */
const isForbidden = (error: unknown): boolean =>
  error instanceof GuardedFetchError && error.failure === 'forbidden'
