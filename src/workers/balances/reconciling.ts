// Compares stored balances with the chain. Balances of most families are sums of changes, so that one wrong change would
// stay forever; and some tokens change without any event. A difference is repaired, logged as an error and recorded for
// the organization: it is either a defect of the service or a token with rules of its own.

import type { Log } from '../../lib/log.ts'
import { expandBacklogs } from '../../storage/balances/backlog.ts'
import {
  type ComparedBalance,
  type Difference,
  repairBalances,
} from '../../storage/balances/reconcile.ts'
import { isReopening } from '../../storage/balances/reopening.ts'
import { recordRepairs } from '../../storage/balances/rounds.ts'
import type { Db } from '../../storage/pg/database.ts'
import { findCursor, lockCursor } from '../../storage/tracking/blocks.ts'
import { hasUnreopened } from '../../storage/tracking/gaps.ts'
import { assertLease } from '../../storage/tracking/leases.ts'
import type { TrackerTools } from '../tracker/tools.ts'
import {
  type RoundCounts,
  type RoundRules,
  type Rounds,
  type RoundTimes,
  startRounds,
  usualRoundTimes,
} from './rounds.ts'

// Slow on purpose: a page of 100 per second compares 360,000 balances in an hour and leaves the
// nodes free for the tracker.
const perPage = 100
const betweenPagesMs = 1_000
const usualTimes: RoundTimes = { ...usualRoundTimes, everyMs: 6 * 60 * 60_000 }
// Much shorter than the time of a block, so that the reading and the cursor are compared while both are fresh.
const cursorPollMs = 100
const cursorWaitMs = 30_000

/**
 * One page: reads, waits until the cursor has come as far, compares and repairs. Undefined where the balances are going to be
 * read again because of a gap, or the tracker does not come as far.
 */
export async function reconcilePage(
  tools: TrackerTools,
  page: readonly ComparedBalance[],
  signal: AbortSignal,
): Promise<{ compared: number; differences: Difference[] } | undefined> {
  const { db, clock, network_id, chain, lease } = tools
  const cursor = await findCursor(db, network_id)
  if (!cursor || (await isReadAgain(db, network_id))) return undefined
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
    if (clock.now() > deadline) return undefined
    await clock.sleep(cursorPollMs, signal)
  }
  const found = page.flatMap(({ wallet_id, address, asset_id }, index) => {
    const { balance, block_number } = readings[index]!
    return balance === null ? [] : [{ wallet_id, address, asset_id, balance, block_number }]
  })
  return await db.transaction().execute(async (trx) => {
    await assertLease(trx, lease.name, lease.epoch)
    // Alone at the cursor: work that waits in a backlog must be seen, too.
    await lockCursor(trx, network_id)
    if (await isReadAgain(trx, network_id)) return undefined
    await expandBacklogs(trx, network_id)
    const now = new Date(clock.now())
    const result = await repairBalances(trx, found, now)
    // A repair names the wallet only; its operational event belongs to an organization.
    const owners = new Map(page.map((one) => [one.wallet_id, one.organization_id]))
    const events = result.differences.map(({ wallet_id }) => ({
      wallet_id,
      organization_id: owners.get(wallet_id)!,
    }))
    await recordRepairs(trx, events, { network_id, now })
    return result
  })
}

/** Whether balances are still to be read again: changes in a gap are not known, and count when it is confirmed, by that reading. */
const isReadAgain = async (db: Db, network_id: number): Promise<boolean> =>
  (await isReopening(db, network_id)) || (await hasUnreopened(db, network_id))

/** Goes through all balances every few hours, slowly. */
export function startReconciling(
  options: {
    tools: TrackerTools
    log: Log
    signal: AbortSignal
    counts: RoundCounts
  } & Partial<RoundTimes>,
): Rounds {
  const { tools, log } = options
  const { chain } = tools
  const times = { ...usualTimes, ...options }
  const compare: RoundRules['compare'] = async (page, signal) => {
    const result = await reconcilePage(tools, page, signal)
    for (const difference of result?.differences ?? []) {
      const { wallet_id, address, asset_id, expected, found, block_number } = difference
      log.error(
        {
          ...{ chain: chain.service, wallet_id, address: chain.formatAddress(address), asset_id },
          ...{ expected: String(expected), found: String(found), block_number },
        },
        'balance differed from the chain and was corrected',
      )
    }
    return result && { ...result, repaired: result.differences.length, unread: 0 }
  }
  return startRounds({
    ...times,
    rules: {
      ...{ perPage, compare },
      pauseMs: () => betweenPagesMs,
      nextMs: ({ nowMs }) => nowMs + times.everyMs,
    },
  })
}
