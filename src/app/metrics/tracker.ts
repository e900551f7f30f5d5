import { Gauge, type Registry } from 'prom-client'
import type { TrackerStatus } from '../../workers/tracker/tracker.ts'
import type { TrackerHealth } from '../../workers/tracker/watch.ts'

/** What the metrics need of the trackers. */
export type TrackersStatus = () => Promise<Record<string, Record<string, Tracker>>>

const longestMs = 2_000
const labelNames = ['chain', 'network']

/** Shows how far the trackers are, and what an operator must look after. */
export function registerTrackerMetrics(registry: Registry, status: TrackersStatus): void {
  // All are collected at once: they share one look.
  let looking: Promise<Tracker[]> | undefined
  const look = (): Promise<Tracker[]> => {
    looking ??= trackers(status).finally(() => {
      looking = undefined
    })
    return looking
  }
  const show = (name: string, help: string, read: (one: Tracker) => number | null) => {
    new Gauge({
      name,
      help,
      labelNames,
      registers: [registry],
      async collect() {
        this.reset()
        for (const tracker of await look()) {
          const { chain, network } = tracker
          const value = read(tracker)
          if (value !== null) this.set({ chain, network }, value)
        }
      },
    })
  }
  show('portolan_tracker_block', 'The last block that is stored.', (one) => one.block_number)
  show('portolan_tracker_head', 'The newest block that the nodes have shown.', (one) => one.head)
  show('portolan_tracker_leading', '1 where this process tracks the chain.', (one) =>
    one.state === 'leading' ? 1 : 0,
  )
  show('portolan_tracker_failing', '1 while tracking fails and is tried again.', (one) =>
    one.health === 'failing' ? 1 : 0,
  )
  show(
    'portolan_tracker_stalled',
    '1 while blocks of the nodes are not stored, or no node reports its head.',
    (one) => (one.health === 'stalled' ? 1 : 0),
  )
  show(
    'portolan_tracker_reorganizations',
    'Reorganizations since this process began.',
    (one) => one.reorganizations,
  )
  show(
    'portolan_tracker_forged_blocks',
    'Blocks in which a node gave a false sender, since this process began.',
    (one) => one.forged_blocks,
  )
  show(
    'portolan_tracker_gaps',
    'Stretches of blocks that no node could serve and that are not filled.',
    (one) => one.gaps.length,
  )
  show('portolan_tracker_gap_blocks', 'Blocks of the gaps that are not filled.', (one) =>
    one.gaps.reduce((sum, gap) => sum + gap.to_block - gap.from_block + 1, 0),
  )
  show(
    'portolan_tracker_refilled_blocks',
    'Blocks of gaps that were filled since this process began.',
    (one) => one.refill.filled,
  )
  show(
    'portolan_tracker_balances_compared',
    'Balances that were compared with the chain since this process began.',
    (one) => one.reconciliation?.checked ?? null,
  )
  show(
    'portolan_tracker_balances_corrected',
    'Balances that differed from the chain and were corrected since this process began.',
    (one) => one.reconciliation?.repaired ?? null,
  )
  new Gauge({
    name: 'portolan_tracker_unknown_kinds',
    help: 'Things in blocks that the code does not know, since this process began.',
    labelNames: [...labelNames, 'kind'],
    registers: [registry],
    async collect() {
      this.reset()
      for (const { chain, network, unknown_kinds } of await look())
        for (const [kind, count] of Object.entries(unknown_kinds))
          this.set({ chain, network, kind }, count)
    },
  })
}

type Tracker = TrackerStatus & TrackerHealth & { gaps: { from_block: number; to_block: number }[] }

/** Without them where the database does not answer: the other metrics must not wait for it. */
async function trackers(status: TrackersStatus): Promise<Tracker[]> {
  const late = Promise.withResolvers<Record<string, Record<string, Tracker>>>()
  const timer = setTimeout(() => late.resolve({}), longestMs)
  try {
    const chains = await Promise.race([status().catch(() => ({})), late.promise])
    return Object.values(chains).flatMap((networks) => Object.values(networks))
  } finally {
    clearTimeout(timer)
  }
}
