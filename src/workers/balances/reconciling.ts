// Compares stored balances with the chain. Balances of most families are sums of changes, so that one wrong change would
// stay forever; and some tokens change without any event. A difference is repaired, logged as an error and recorded for
// the organization: it is either a defect of the service or a token with rules of its own.

import type { Log } from '../../lib/log.ts'
import { expandBacklogs } from '../../storage/balances/backlog.ts'
import {
  type BalancePair,
  type Difference,
  pageBalances,
  repairBalances,
} from '../../storage/balances/reconcile.ts'
import { isReopening } from '../../storage/balances/reopening.ts'
import { recordRepairs } from '../../storage/balances/rounds.ts'
import { findCursor, lockCursor } from '../../storage/tracking/blocks.ts'
import { assertLease } from '../../storage/tracking/leases.ts'
import type { TrackerTools } from '../tracker/tools.ts'

/** The loop that compares balances that may drift (`delta`, `changesSilently`) with what the nodes say. */
export type Reconciling = { stop(): Promise<void> }

/** When it begins, and how long after the end of a round the next one begins. */
export type ReconcileTimes = { firstMs: number; everyMs: number }

// Slow on purpose: a page of 100 per second compares 360,000 balances in an hour and leaves the
// nodes free for the tracker.
const perPage = 100
const betweenPagesMs = 1_000
const usualTimes: ReconcileTimes = { firstMs: 10 * 60_000, everyMs: 6 * 60 * 60_000 }
// After a failure, such as nodes that do not answer; the round begins again from its first page.
const pauseMs = 30_000
// Much shorter than the time of a block, so that the reading and the cursor are compared while both are fresh.
const cursorPollMs = 100
const cursorWaitMs = 30_000

/** One page: reads, waits until the cursor has come as far, compares and repairs. */
export async function reconcilePage(
  tools: TrackerTools,
  after: BalancePair | undefined,
  signal: AbortSignal,
): Promise<{ checked: number; differences: Difference[]; last: BalancePair | undefined }> {
  const { db, clock, network_id, chain, lease } = tools
  // Keyset pages: rows that are added or removed meanwhile neither repeat nor shift the others.
  const page = await pageBalances(db, network_id, { after, limit: perPage })
  const cursor = await findCursor(db, network_id)
  const last = page.length < perPage ? undefined : page.at(-1)
  if (page.length === 0 || !cursor) return { checked: 0, differences: [], last: undefined }
  const readings = await chain.readBalances(
    page.map(({ address, asset_type, contract_address, token_id }) => ({
      address,
      asset: { asset_type, contract_address, token_id },
    })),
    { number: cursor.block_number, hash: cursor.block_hash },
    signal,
  )
  // Nodes may be ahead of the cursor. The changes up to the block of a reading must be stored before the two
  // can be compared.
  const highest = Math.max(...readings.map(({ block_number }) => block_number))
  // The tracker normally needs one block time. A stalled tracker must not keep this loop waiting.
  const deadline = clock.now() + cursorWaitMs
  while (((await findCursor(db, network_id))?.block_number ?? 0) < highest) {
    if (clock.now() > deadline) throw new Error(`the cursor did not reach block ${highest}`)
    await clock.sleep(cursorPollMs, signal)
  }
  const found = page.flatMap(({ wallet_id, address, asset_id }, index) => {
    const { balance, block_number } = readings[index]!
    return balance === null ? [] : [{ wallet_id, address, asset_id, balance, block_number }]
  })
  const differences = await db.transaction().execute(async (trx) => {
    await assertLease(trx, lease.name, lease.epoch)
    // Alone at the cursor: work that waits in a backlog must be seen, too.
    await lockCursor(trx, network_id)
    // Changes in a gap are not known. They count when it is confirmed, by a reading of every balance.
    if (await isReopening(trx, network_id)) return []
    await expandBacklogs(trx, network_id)
    const now = new Date(clock.now())
    const repaired = await repairBalances(trx, found, now)
    // A repair names the wallet only; its operational event belongs to an organization.
    const owners = new Map(page.map((one) => [one.wallet_id, one.organization_id]))
    const events = repaired.map(({ wallet_id }) => ({
      wallet_id,
      organization_id: owners.get(wallet_id)!,
    }))
    await recordRepairs(trx, events, { network_id, now })
    return repaired
  })
  return { checked: page.length, differences, last }
}

/** Goes through all balances every few hours, slowly. */
export function startReconciling(
  options: {
    tools: TrackerTools
    log: Log
    signal: AbortSignal
    /** Added to. */
    counts: { checked: number; repaired: number }
  } & Partial<ReconcileTimes>,
): Reconciling {
  const { tools, log, counts } = options
  const { firstMs, everyMs } = { ...usualTimes, ...options }
  const { clock, chain } = tools
  const stopping = new AbortController()
  const signal = AbortSignal.any([options.signal, stopping.signal])

  const round = async (): Promise<void> => {
    let after: BalancePair | undefined
    do {
      const page = await reconcilePage(tools, after, signal)
      counts.checked += page.checked
      counts.repaired += page.differences.length
      for (const {
        wallet_id,
        address,
        asset_id,
        expected,
        found,
        block_number,
      } of page.differences)
        log.error(
          {
            ...{ chain: chain.service, wallet_id, address: chain.formatAddress(address), asset_id },
            ...{ expected: String(expected), found: String(found), block_number },
          },
          'balance differed from the chain and was corrected',
        )
      after = page.last
      if (after) await clock.sleep(betweenPagesMs, signal)
    } while (after)
  }
  const run = async (): Promise<void> => {
    let waitMs = firstMs
    while (!signal.aborted) {
      try {
        await clock.sleep(waitMs, signal)
        await round()
        waitMs = everyMs
      } catch (error) {
        if (signal.aborted) return
        log.warn({ err: error, retry_ms: pauseMs }, 'comparing balances failed, will retry')
        waitMs = pauseMs
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
