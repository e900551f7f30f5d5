// Reads due balances and compares stored ones with the chain, outside of the transactions of blocks. It uses
// storage and the chain. It guarantees that a stored balance belongs to a block with the confirmation of its
// wallet, and that a balance which cannot be read delays no other one.

import { BlockGoneError, ChainUnavailableError } from '../../chains/chain.ts'
import type { Log } from '../../lib/log.ts'
import { createOutage } from '../../lib/outage.ts'
import type { TrackerTools } from '../tracker/tools.ts'
import { lowerBalances, settleBalances } from './balances.ts'
import { createPatience } from './patience.ts'

/** The loop that keeps balances up to date beside the one that stores blocks. */
export type Settling = {
  /** Says that the cursor moved, how far it is behind the head, and the time of its block. */
  wake(news: { behind: number; time?: number | undefined }): void
  stop(): Promise<void>
}

// Operations of other processes store work without a wake-up.
const pollMs = 5_000
// The pause doubles from the first to the last while reading fails.
const firstPauseMs = 250
const lastPauseMs = 10_000
const blockPauseMs = 1_000

/** Settles balances after each move of the cursor, and now and then by itself. */
export function startSettling(options: {
  tools: TrackerTools
  log: Log
  signal: AbortSignal
  /** Further behind, reading waits: what is touched again and again is then read once, at the end. */
  farBehind: number
  /** Called when all balances that were due at the block of this time are read. */
  onSettled?(time: number): void
}): Settling {
  const { tools, log, farBehind } = options
  const stopping = new AbortController()
  const signal = AbortSignal.any([options.signal, stopping.signal])
  let woken = Promise.withResolvers<void>()
  let behind = 0
  let blockTime: number | undefined
  let pauseMs = firstPauseMs
  // Kept over rounds: how long a block has been unreadable is counted from its first failure.
  const patience = createPatience(tools.clock)
  const outage = createOutage({
    ...{ log, now: tools.clock.now },
    begins: 'reading balances failed, will retry',
    ends: 'balances are read again',
    // A block that left the chain, or that a node lacks, is nothing to look for in a stack.
    isPlain: (error) => error instanceof BlockGoneError || error instanceof ChainUnavailableError,
  })

  const wait = async (ms: number): Promise<void> => {
    const waiting = new AbortController()
    const timer = tools.clock.sleep(ms, AbortSignal.any([signal, waiting.signal])).catch(() => {})
    // A wake-up during a round has resolved this promise already, so it is not lost.
    await Promise.race([timer, woken.promise])
    waiting.abort()
    woken = Promise.withResolvers()
  }

  const run = async (): Promise<void> => {
    while (!signal.aborted) {
      try {
        let done = 1
        // Taken before the round: a block that arrives during it is reported by the next round.
        const time = blockTime
        while (done > 0 && behind <= farBehind && !signal.aborted)
          done = await settleBalances(tools, signal, patience)
        // Nothing is read far behind, but no balance may claim a block that is gone.
        while (behind > farBehind && !signal.aborted && (await lowerBalances(tools)) > 0);
        if (time !== undefined && done === 0) {
          options.onSettled?.(time)
          if (blockTime === time) blockTime = undefined
        }
        outage.recovered()
        pauseMs = firstPauseMs
        await wait(pollMs)
      } catch (error) {
        if (signal.aborted) return
        outage.failed(error, { retry_ms: pauseMs })
        await wait(pauseMs)
        // A block that one node lacks comes soon, or another node is asked.
        const longestMs = error instanceof BlockGoneError ? blockPauseMs : lastPauseMs
        pauseMs = Math.min(pauseMs * 2, longestMs)
      }
    }
  }

  const running = run()
  return {
    wake: (news) => {
      behind = news.behind
      blockTime = news.time ?? blockTime
      woken.resolve()
    },
    stop: async () => {
      stopping.abort()
      await running
    },
  }
}
