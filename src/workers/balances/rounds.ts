// The walk through all balances of a network that are compared with the chain. How far it is, is stored: a restart, a change
// of the lease and a failure continue it there. A page that keeps failing is made smaller, then skipped and shown, so that it
// keeps no later one from being compared.

import type { ContractType } from '../../contract/records/assets.ts'
import type { Log } from '../../lib/log.ts'
import { pageMissing } from '../../storage/balances/missing.ts'
import { type ComparedBalance, pageBalances } from '../../storage/balances/reconcile.ts'
import {
  type BalanceRound,
  beginRound,
  findRound,
  moveRound,
  type RoundPosition,
} from '../../storage/balances/rounds.ts'
import type { TrackerTools } from '../tracker/tools.ts'

/** The loop that compares stored balances with what the nodes say. */
export type Rounds = { stop(): Promise<void> }

/** When it begins, how long a round or the pause after it is, and for how long a balance that fails holds up the next. */
export type RoundTimes = { firstMs: number; everyMs: number; patienceMs: number }

/** Added to: balances that were compared, that differed, and that could not be compared. */
export type RoundCounts = { checked: number; repaired: number; skipped: number }

/** What came of a page; undefined where work is open that has to be done before. */
export type Compared = { compared: number; repaired: number; unread: number } | undefined

/** What is compared, and how fast. */
export type RoundRules = {
  perPage: number
  compare(page: readonly ComparedBalance[], signal: AbortSignal): Promise<Compared>
  /** Looks for balances that are not stored; undefined where that is no difference. */
  addMissing?(page: readonly ComparedBalance[], signal: AbortSignal): Promise<Compared>
  /** The wait after a page, when so many more are left. */
  pauseMs(left: { pages: number; untilMs: number }): number
  /** When the next round begins. */
  nextMs(round: { beginMs: number; nowMs: number }): number
}

/** The times that are not configured. */
export const usualRoundTimes = { firstMs: 10 * 60_000, patienceMs: 10 * 60_000 }

// After a failure; doubled with each further one. Also the wait for work that has to be done before.
const failurePauseMs = 1_000
const longestPauseMs = 30_000
// Work that has to be done before takes seconds, or minutes after a gap. Longer than this is reported.
const usualHoldMs = 10 * 60_000
// A page that has failed so often is read in smaller ones.
const attemptsPerSize = 2
const shrink = 10

/** Goes through all balances, over and over. */
export function startRounds(
  options: {
    tools: TrackerTools
    log: Log
    signal: AbortSignal
    counts: RoundCounts
    rules: RoundRules
  } & RoundTimes,
): Rounds {
  const { tools, log, counts, rules, firstMs, everyMs, patienceMs } = options
  const { db, clock, chain, network_id } = tools
  const stopping = new AbortController()
  const signal = AbortSignal.any([options.signal, stopping.signal])
  const tokens = new Map(
    Object.entries(chain.standards ?? {}).flatMap(([type, { asset_type, isCollection }]) =>
      isCollection ? [] : [[type as ContractType, asset_type] as const],
    ),
  )
  const token_types = rules.addMissing && [...tokens.keys()]
  let size = rules.perPage
  let failures = 0
  let attempts = 0
  let failingSince: number | undefined
  /** Pages that were skipped one after the other. */
  let skips = 0
  let heldSince: number | undefined
  let isHoldReported = false

  const begin = (at: number) => beginRound(db, network_id, { now: new Date(at), token_types })

  const nextPage = async (round: BalanceRound): Promise<Page> => {
    const { wallet_id, address, asset_id, round_number, looks_for_missing } = round
    const after = wallet_id && address ? { wallet_id, address, asset_id } : undefined
    if (!looks_for_missing) {
      const { balances, last } = await pageBalances(db, network_id, { after, limit: size })
      const isEnd = !last && !rules.addMissing
      const next = isEnd ? undefined : { looks_for_missing: !last, after: last }
      return { pairs: balances, passed: balances.length, next }
    }
    const { pairs, passed, last } = await pageMissing(db, network_id, {
      ...{ native: chain.native, tokens, after, limit: size },
      round_number: round_number ?? 0,
    })
    return { pairs, passed, next: last && { looks_for_missing: true, after: last } }
  }

  /** Goes on behind a page; says how long to wait before the next one. */
  const move = async (round: BalanceRound, { passed, next }: Page): Promise<number> => {
    const nowMs = clock.now()
    const beginMs = round.begin_time.getTime()
    if (next) {
      await moveRound(db, network_id, { ...next, passed })
      const left = round.balance_count - (round.passed_count ?? 0) - passed
      const pages = Math.max(0, Math.ceil(left / rules.perPage))
      // A page without a balance is no part of the time that is left for those with some.
      const untilMs = passed === 0 ? 0 : beginMs + everyMs - nowMs
      return rules.pauseMs({ pages, untilMs })
    }
    const nextMs = rules.nextMs({ beginMs, nowMs })
    await begin(nextMs)
    return nextMs - nowMs
  }

  const findOrBegin = async (): Promise<BalanceRound> =>
    (await findRound(db, network_id)) ?? (await begin(clock.now()))

  /** One page; says how long to wait before the next one. */
  const step = async (): Promise<number> => {
    const round = await findOrBegin()
    const waitMs = round.begin_time.getTime() - clock.now()
    // The period was longer when the beginning was stored.
    if (waitMs > everyMs + longestPauseMs) {
      await begin(clock.now() + everyMs)
      return everyMs
    }
    if (waitMs > 0) return waitMs
    const page = await nextPage(round)
    const act = round.looks_for_missing ? rules.addMissing : rules.compare
    const none = { compared: 0, repaired: 0, unread: 0 }
    const result = page.pairs.length > 0 ? await act?.(page.pairs, signal) : none
    // Nothing is passed that was not compared: the round continues once the work is done.
    if (!result) {
      reportHold()
      return Math.min(longestPauseMs, everyMs)
    }
    heldSince = undefined
    isHoldReported = false
    const pauseMs = await move(round, page)
    // Counted after the commit. A page that failed is compared again and counted once.
    counts.checked += result.compared
    counts.repaired += result.repaired
    counts.skipped += result.unread
    // A page that passed nothing says nothing about its neighbours.
    if (page.passed > 0) {
      size = Math.min(rules.perPage, size * shrink)
      attempts = skips = 0
      failingSince = undefined
    }
    return pauseMs
  }

  /** Says once when the comparison has not continued for long. */
  const reportHold = (): void => {
    heldSince ??= clock.now()
    if (isHoldReported || clock.now() - heldSince < usualHoldMs) return
    isHoldReported = true
    log.warn(
      { chain: chain.service, network_id, minutes: usualHoldMs / 60_000 },
      'balances are not compared: the tracker is behind, or balances are still to be read again after a gap or a rewind',
    )
  }

  /** Makes the page smaller that failed, or skips it; says how long to wait. */
  const fail = async (error: unknown): Promise<number> => {
    const waitMs = Math.min(failurePauseMs * 2 ** failures++, longestPauseMs)
    log.warn({ err: error, retry_ms: waitMs }, 'comparing balances failed, will retry')
    // While no node answers anything, it is not the page that fails.
    await chain.head(signal)
    attempts++
    failingSince ??= clock.now()
    heldSince = undefined
    if (skips === 0 && size > 1) {
      if (attempts < attemptsPerSize) return waitMs
      size = Math.ceil(size / shrink)
      attempts = 0
      failingSince = undefined
      return waitMs
    }
    // Neighbours that fail too are skipped sooner and more at once: a round must end.
    if (clock.now() - failingSince < patienceMs / 2 ** skips) return waitMs
    const round = await findOrBegin()
    const page = await nextPage(round)
    const pauseMs = await move(round, page)
    counts.skipped += page.pairs.length
    const [first] = page.pairs
    log.error(
      {
        ...{ chain: chain.service, network_id, balances: page.pairs.length, err: error },
        ...(first && {
          ...{ wallet_id: first.wallet_id, asset_id: first.asset_id },
          address: chain.formatAddress(first.address),
        }),
      },
      'balances could not be compared and were skipped until the next round',
    )
    skips++
    size = Math.min(rules.perPage, 2 ** skips)
    failingSince = undefined
    return Math.min(pauseMs, waitMs)
  }

  const run = async (): Promise<void> => {
    let waitMs = firstMs
    while (!signal.aborted) {
      try {
        await clock.sleep(waitMs, signal)
        waitMs = await step()
        failures = 0
      } catch (error) {
        if (signal.aborted) return
        waitMs = await fail(error).catch(() => longestPauseMs)
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

type Page = {
  pairs: ComparedBalance[]
  /** How many the page stands for in the count of the round. */
  passed: number
  /** Where the round continues; undefined at its end. */
  next: Omit<RoundPosition, 'passed'> | undefined
}
