import { ChainUnavailableError } from '../../chains/chain.ts'
import { hashId } from '../../lib/hash-id.ts'
import { enqueueJob, type JobRow, keepJob } from '../../storage/tracking/jobs.ts'
import { assetIdOf } from '../../storage/wallets/assets.ts'
import type { Context, WalletHandler } from '../context.ts'
import { type RefreshTarget, refreshJobKind, runRefresh } from './refresh-job.ts'
import { type ChainScope, chainScope, readHolder } from './scope.ts'

/** What is read before the answer (docs/decisions/wallets.md); the rest is read after it. */
const atOnce = { balances: 100, pages: 20 }

/** While the caller waits, no other process claims the job; afterwards another process does in any case. */
const takeoverMs = 30_000

/** Reads balances again from the chain. */
export const RefreshAssetBalances: WalletHandler<'RefreshAssetBalances'> = async (
  context,
  request,
) => {
  const scope = await chainScope(context)
  const { wallet_id = '', address } = await readHolder(context, scope, request)
  await requestRefresh(context, scope, {
    wallet_id,
    asset_type: request.asset_type,
    ...(address && { address: address.toString('hex') }),
  })
  return {}
}

/** Reads the native balance of an address that was just registered. */
export async function importNative(
  context: Context,
  scope: ChainScope,
  { wallet_id, address }: { wallet_id: string; address: Buffer },
): Promise<void> {
  const { native } = scope.family
  await requestRefresh(context, scope, {
    wallet_id,
    address: address.toString('hex'),
    asset_type: native.asset_type,
    asset_id: assetIdOf(scope.network_id, native),
  })
}

/** Stores the work first, then does the first part of it: once this returns it will be done. */
export async function requestRefresh(
  context: Context,
  scope: ChainScope,
  target: RefreshTarget,
): Promise<void> {
  const { organization_id, network_id, chain } = scope
  const { wallet_id, address = '', asset_type, asset_id = '' } = target
  const job = await enqueueJob(context.db, {
    // The same request again is the same job, so that repeating it does not queue more work.
    job_id: hashId('refresh', network_id, wallet_id, address, asset_type, asset_id),
    kind: refreshJobKind,
    organization_id,
    network_id,
    payload: target,
    claimMs: takeoverMs,
  })
  await readFirst(context, chain, job)
}

async function readFirst(context: Context, chain: ChainScope['chain'], job: JobRow): Promise<void> {
  const { db, clock, log, signal } = context
  try {
    await runRefresh({ db, clock, chain, signal, most: atOnce }, job)
  } catch (error) {
    // The work is stored: that no node answers now only delays it.
    if (!(error instanceof ChainUnavailableError) && !signal.aborted)
      log.warn({ err: error, job_id: job.job_id }, 'reading balances failed, will retry')
    const last_error = error instanceof Error ? error.message : String(error)
    await keepJob(db, job, { keepMs: 0, last_error })
  }
}
