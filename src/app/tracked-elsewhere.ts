import type { Chain } from '../chains/chain.ts'
import { createHistogram, waitBounds } from '../lib/histogram.ts'
import type { Db } from '../storage/pg/database.ts'
import { listOpenGaps } from '../storage/tracking/gaps.ts'
import type { NetworkName } from '../storage/tracking/networks.ts'
import type { Tracker } from '../workers/tracker/tracker.ts'

const none = createHistogram(waitBounds).read()

/** Stands for the tracker in a process without the role `tracker`: like one that waits for its lease. */
export const trackedElsewhere = (options: {
  db: Db
  network_id: number
  name: NetworkName
  chain: Pick<Chain, 'newest'>
}): Tracker => ({
  status: () => ({
    ...options.name,
    state: 'waiting',
    block_number: null,
    head: options.chain.newest() ?? null,
    reorganizations: 0,
    forged_blocks: 0,
    refill: { filled: 0, failed: 0 },
    unknown_kinds: {},
    last_error: '',
    last_error_time: null,
  }),
  failing: () => undefined,
  timings: () => ({ stored: none, settled: none }),
  gaps: () => listOpenGaps(options.db, options.network_id),
  stop: async () => {},
})
