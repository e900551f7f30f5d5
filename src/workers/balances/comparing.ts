import type { Log } from '../../lib/log.ts'
import type { ComparedBalance } from '../../storage/balances/reconcile.ts'
import type { TrackerTools } from '../tracker/tools.ts'
import { addMissing, compareBalances, type PageOfDifferences } from './compare-balances.ts'
import { createPatience } from './patience.ts'
import {
  type Compared,
  type RoundCounts,
  type Rounds,
  type RoundTimes,
  startRounds,
  usualRoundTimes,
} from './rounds.ts'

// As many as fit in one call of Multicall3.
const perPage = 200
// What it may cost at the most: a page in this time, however many balances there are.
const leastPauseMs = 250
const usualTimes: RoundTimes = { ...usualRoundTimes, everyMs: 24 * 60 * 60_000 }

/**
 * Compares all balances of a chain whose tokens need not emit events with the nodes within a period, evenly, over and over,
 * and looks for balances that are not stored.
 */
export function startComparing(
  options: {
    tools: TrackerTools
    log: Log
    signal: AbortSignal
    counts: RoundCounts
  } & Partial<RoundTimes>,
): Rounds {
  const { tools, log } = options
  const { chain, network_id } = tools
  const times = { ...usualTimes, ...options }
  const patience = createPatience(tools.clock)

  type Act = typeof compareBalances
  const logged =
    (act: Act) =>
    async (page: readonly ComparedBalance[], signal: AbortSignal): Promise<Compared> => {
      const result = await act(tools, page, signal, patience)
      if (result) logFirst(result)
      return result && { ...result, repaired: result.differences.length }
    }
  const logFirst = ({ differences, unread }: PageOfDifferences): void => {
    if (unread > 0)
      log.warn(
        { chain: chain.service, network_id, balances: unread },
        'no node has the states of a block: balances were skipped until the next round',
      )
    const [first] = differences
    if (!first) return
    log.warn(
      {
        ...{ chain: chain.service, network_id, differences: differences.length },
        ...{ wallet_id: first.wallet_id, address: chain.formatAddress(first.address) },
        ...{ asset_id: first.asset_id, block_number: first.block_number, reason: first.reason },
        ...{ expected: String(first.expected), found: String(first.found) },
      },
      'balances differed from the chain and were corrected',
    )
  }
  return startRounds({
    ...times,
    rules: {
      perPage,
      compare: logged(compareBalances),
      addMissing: logged(addMissing),
      // What is left of the period for what is left of the round, so that nodes see an even load instead of a peak.
      pauseMs: ({ pages, untilMs }) => Math.max(leastPauseMs, untilMs / (pages + 1)),
      // A short round does not begin the next one early: its period must end first.
      nextMs: ({ beginMs, nowMs }) => Math.max(beginMs + times.everyMs, nowMs + leastPauseMs),
    },
  })
}
