// The first page of a cover job is done before the caller is answered, so that a wallet with few addresses is complete in
// the answer if the nodes answer within `waitMs`.

import { ChainUnavailableError } from '../../chains/chain.ts'
import { hashId } from '../../lib/hash-id.ts'
import { findCursor } from '../../storage/tracking/blocks.ts'
import { enqueueJob, type JobRow } from '../../storage/tracking/jobs.ts'
import { holdTokenRules, listRuleAssets } from '../../storage/wallets/token-rules.ts'
import type { Context } from '../context.ts'
import { type CoverTarget, coverJobKind, postponeCover, runCover } from './cover-job.ts'
import type { ChainScope } from './scope.ts'

/** While the caller waits, no worker takes the job. */
const takeoverMs = 30_000

/** How long the caller waits for the first page; nodes that hang must not make every registration slow. */
const waitMs = 5_000

/** Stores the work that tracks tokens of rules. */
export async function enqueueCover(
  { db }: Pick<Context, 'db'>,
  { organization_id, network_id }: ChainScope,
  target: CoverTarget,
): Promise<JobRow> {
  const cursor = await findCursor(db, network_id)
  return await enqueueJob(db, {
    // Without the block: a job that is repeated before it ends keeps the first one.
    job_id: hashId('cover', organization_id, network_id, JSON.stringify(target)),
    kind: coverJobKind,
    organization_id,
    network_id,
    payload: { ...target, ...(cursor && { since_block: cursor.block_number }) },
    claimMs: takeoverMs,
  })
}

/**
 * Stores the work for addresses that are being registered, in their transaction. Only where tokens sit in
 * accounts of their own (T): elsewhere a block names the address itself.
 */
export async function coverRegistered(
  context: Pick<Context, 'db' | 'clock'>,
  scope: ChainScope,
  { wallet_id, addresses }: { wallet_id: string; addresses: readonly Buffer[] },
): Promise<JobRow | undefined> {
  if (!scope.family.tokenAccounts) return undefined
  await holdTokenRules(context.db, scope.organization_id)
  const assets = await listRuleAssets(context.db, scope, wallet_id)
  if (assets.length === 0) return undefined
  const texts = addresses.map((address) => address.toString('hex'))
  return await enqueueCover(context, scope, { wallet_id, addresses: texts })
}

/** Does the first page of the work before the answer. The rest, and what fails, is done behind it. */
export async function coverFirst(
  context: Context,
  { chain }: ChainScope,
  job: JobRow | undefined,
): Promise<void> {
  if (!job) return
  const { db, clock, log } = context
  // Five seconds at the most: the job continues in the background after that.
  const signal = AbortSignal.any([context.signal, AbortSignal.timeout(waitMs)])
  try {
    await runCover({ db, clock, chain, signal }, job)
  } catch (error) {
    if (!(error instanceof ChainUnavailableError) && !signal.aborted)
      log.warn({ err: error, job_id: job.job_id }, 'tracking tokens failed, will retry')
    await postponeCover({ db }, job, error)
  }
}
