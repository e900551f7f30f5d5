import { Pool } from 'undici'
import type { Pair } from '../helpers/signer.ts'
import { abuses, createFund } from './abuses.ts'

/** What the process of the abuser reports: that it is prepared, or the outcomes of a round. */
export type Report = 'ready' | Readonly<Record<string, number>>

// Its own address: limits per address must not be the reason why the quiet tenant waits.
const localAddress = '127.0.0.2'

const [kind = '', base_url = '', fund_url = '', pair = ''] = process.argv.slice(2)
const outcomes: Record<string, number> = {}
const pool = new Pool(base_url, { connections: 64, pipelining: 1, connect: { localAddress } })
const work = await abuses[kind]!.prepare({
  ...{ pool, base_url, localAddress, pair: JSON.parse(pair) as Pair, fund: createFund(fund_url) },
  note(outcome, count = 1) {
    outcomes[outcome] = (outcomes[outcome] ?? 0) + count
  },
})
let round: { stop(): Promise<void> } | undefined
process.on('message', async (message) => {
  if (message === 'begin') {
    const stopping = new AbortController()
    const working = work(stopping.signal)
    round = {
      stop: async () => {
        stopping.abort()
        await working
      },
    }
  } else {
    await round?.stop()
    process.send?.(outcomes satisfies Report)
  }
})
process.send?.('ready' satisfies Report)
