import type { Log } from '../../lib/log.ts'
import { type BalancePair, pageBalances } from '../../storage/balances/reconcile.ts'
import { beginRound, findRound, moveRound } from '../../storage/balances/rounds.ts'
import type { TrackerTools } from '../tracker/tools.ts'
import { compareBalances } from './compare-balances.ts'
import type { ReconcileTimes, Reconciling } from './reconciling.ts'

// As many as fit in one call of Multicall3.
const perPage = 200
// What it may cost at the most: a page in this time, however many balances there are.
const leastPauseMs = 250
// After a failure; doubled with each further one.
const failurePauseMs = 1_000
const longestPauseMs = 30_000
const usualTimes: ReconcileTimes = { firstMs: 10 * 60_000, everyMs: 24 * 60 * 60_000 }

/**
 * Compares all balances of a chain with the nodes within a period, evenly, over and over. How far it
 * is, is stored: a restart begins no round anew.
 */
export function startComparing(
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
  const { db, clock, chain, network_id } = tools
  const stopping = new AbortController()
  const signal = AbortSignal.any([options.signal, stopping.signal])

  /** One page; says how long to wait before the next one. */
  const step = async (): Promise<number> => {
    // The round is a row, so that a restart and a change of the lease continue it.
    const round =
      (await findRound(db, network_id)) ?? (await beginRound(db, network_id, new Date(clock.now())))
    const { wallet_id, address, asset_id } = round
    const after: BalancePair | undefined =
      wallet_id && address && asset_id ? { wallet_id, address, asset_id } : undefined
    const page = await pageBalances(db, network_id, { after, limit: perPage })
    const differences = await compareBalances(tools, page, signal)
    // Counted after the commit. A page that failed is compared again and counted once.
    counts.checked += page.length
    counts.repaired += differences.length
    const [first] = differences
    if (first)
      log.warn(
        {
          ...{ chain: chain.service, network_id, differences: differences.length },
          ...{ wallet_id: first.wallet_id, address: chain.formatAddress(first.address) },
          ...{ asset_id: first.asset_id, block_number: first.block_number, reason: first.reason },
          ...{ expected: String(first.expected), found: String(first.found) },
        },
        'balances differed from the chain and were corrected',
      )
    if (page.length === perPage) {
      await moveRound(db, network_id, page.at(-1))
      // The pause follows the number of balances, so that nodes see an even load instead of a peak.
      return Math.max(leastPauseMs, everyMs / Math.ceil((round.balance_count + 1) / perPage))
    }
    const endMs = round.begin_time.getTime() + everyMs
    // A short round does not begin the next one early: its period must end first.
    await beginRound(db, network_id, new Date(Math.max(clock.now(), endMs)))
    return Math.max(leastPauseMs, endMs - clock.now())
  }

  const run = async (): Promise<void> => {
    let waitMs = firstMs
    let failures = 0
    while (!signal.aborted) {
      try {
        await clock.sleep(waitMs, signal)
        waitMs = await step()
        failures = 0
      } catch (error) {
        if (signal.aborted) return
        waitMs = Math.min(failurePauseMs * 2 ** failures++, longestPauseMs)
        log.warn({ err: error, retry_ms: waitMs }, 'comparing balances failed, will retry')
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
