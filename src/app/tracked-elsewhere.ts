import type { Chain } from '../chains/chain.ts'
import { createHistogram, waitBounds } from '../lib/histogram.ts'
import type { Db } from '../storage/pg/database.ts'
import { listOpenGaps } from '../storage/tracking/gaps.ts'
import type { NetworkName } from '../storage/tracking/networks.ts'
import type { Tracker, TrackerStatus } from '../workers/tracker/tracker.ts'

const none = createHistogram(waitBounds).read()

/** The status of a network that this process does not track. */
export const untrackedStatus = (name: NetworkName, head: number | null = null): TrackerStatus => ({
  ...name,
  state: 'waiting',
  block_number: null,
  head,
  reorganizations: 0,
  forged_blocks: 0,
  refill: { filled: 0, failed: 0 },
  unknown_kinds: {},
  last_error: '',
  last_error_time: null,
})

/** Stands for the tracker in a process without the role `tracker`: like one that waits for its lease. */
export const trackedElsewhere = (options: {
  db: Db
  network_id: number
  name: NetworkName
  chain: Pick<Chain, 'newest'>
}): Tracker => ({
  status: () => untrackedStatus(options.name, options.chain.newest() ?? null),
  failing: () => undefined,
  timings: () => ({ stored: none, settled: none }),
  gaps: () => listOpenGaps(options.db, options.network_id),
  stop: async () => {},
})
