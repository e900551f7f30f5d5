import type { Registry } from 'prom-client'
import type { HistogramCounts } from '../../lib/histogram.ts'
import type { SenderStatus } from '../../workers/sender/sender.ts'
import type { TrackerStatus } from '../../workers/tracker/tracker.ts'
import type { TrackerHealth } from '../../workers/tracker/watch.ts'
import { show, showHistogram } from './show.ts'

/** What the metrics need of the trackers. */
export type TrackersStatus = () => Promise<Record<string, Record<string, Tracker>>>

/** How long the work for new blocks took on one network. */
export type TrackerTimings = {
  chain: string
  network: string
  /** From the time of a block to the commit of its transfers. */
  stored: HistogramCounts
  /** From the time of a block to the last balance that it made due. */
  settled: HistogramCounts
}

// A scrape has a time limit of its own; the database must not use it up.
const longestMs = 2_000
const labelNames = ['chain', 'network']

/** Exports how far the trackers are, and what needs the attention of an operator. */
export function registerTrackerMetrics(
  registry: Registry,
  status: TrackersStatus,
  timings: () => Iterable<TrackerTimings>,
): void {
  // All are collected at once: they share one look.
  let looking: Promise<Tracker[]> | undefined
  const look = (): Promise<Tracker[]> => {
    looking ??= trackers(status).finally(() => {
      looking = undefined
    })
    return looking
  }
  const each = (
    kind: 'counter' | 'gauge',
    name: string,
    help: string,
    read: (one: Tracker) => number | null,
  ) =>
    show(registry, kind, { name, help, labelNames }, async () =>
      (await look()).flatMap((tracker) => {
        const { chain, network } = tracker
        const value = read(tracker)
        return value === null ? [] : [{ labels: { chain, network }, value }]
      }),
    )
  const gauge = each.bind(undefined, 'gauge')
  const counter = each.bind(undefined, 'counter')
  gauge('portolan_tracker_block', 'The last block that is stored.', (one) => one.block_number)
  gauge('portolan_tracker_head', 'The newest block that the nodes have shown.', (one) => one.head)
  // Every process that may track exports its networks: one of them leads, and an alert reports when none does.
  gauge('portolan_tracker_leading', '1 where this process tracks the chain.', (one) =>
    one.state === 'leading' ? 1 : 0,
  )
  gauge('portolan_tracker_failing', '1 while tracking fails and is retried.', (one) =>
    one.health === 'failing' ? 1 : 0,
  )
  gauge(
    'portolan_tracker_stalled',
    '1 while blocks of the nodes are not stored, or no node reports its head.',
    (one) => (one.health === 'stalled' ? 1 : 0),
  )
  counter(
    'portolan_tracker_reorganizations_total',
    'Reorganizations that were followed.',
    (one) => one.reorganizations,
  )
  counter(
    'portolan_tracker_forged_blocks_total',
    'Blocks in which a node gave a false sender.',
    // Not zero means a dishonest node: blocks are accepted from another one, but the operator should remove it.
    (one) => one.forged_blocks,
  )
  gauge(
    'portolan_tracker_gaps',
    'Stretches of blocks that no node could serve and that are not filled.',
    (one) => one.gaps.length,
  )
  gauge('portolan_tracker_gap_blocks', 'Blocks of the gaps that are not filled.', (one) =>
    one.gaps.reduce((sum, gap) => sum + gap.to_block - gap.from_block + 1, 0),
  )
  counter(
    'portolan_tracker_refilled_blocks_total',
    'Blocks of gaps that were filled.',
    (one) => one.refill.filled,
  )
  counter(
    'portolan_tracker_balances_compared_total',
    'Balances that were compared with the chain.',
    (one) => one.reconciliation?.checked ?? null,
  )
  counter(
    'portolan_tracker_balances_corrected_total',
    'Balances that differed from the chain and were corrected.',
    (one) => one.reconciliation?.repaired ?? null,
  )
  counter(
    'portolan_tracker_balances_skipped_total',
    'Balances that could not be compared with the chain.',
    (one) => one.reconciliation?.skipped ?? null,
  )
  show(
    registry,
    'counter',
    {
      name: 'portolan_tracker_unknown_kinds_total',
      help: 'Things in blocks that the code does not know.',
      labelNames: [...labelNames, 'kind'],
    },
    async () =>
      (await look()).flatMap(({ chain, network, unknown_kinds }) =>
        Object.entries(unknown_kinds).map(([kind, value]) => ({
          labels: { chain, network, kind },
          value,
        })),
      ),
  )
  gauge(
    'portolan_transactions_open',
    'Managed transactions that are on their way, of all processes.',
    ({ transactions }) => transactions?.open ?? null,
  )
  gauge(
    'portolan_transactions_stuck',
    'Managed transactions that were sent more than 10 minutes ago and are in no block, of all processes.',
    ({ transactions }) => transactions?.stuck ?? null,
  )
  const times = (name: string, help: string, pick: (one: TrackerTimings) => HistogramCounts) =>
    showHistogram(registry, { name, help, labelNames }, function* () {
      for (const one of timings())
        yield { labels: { chain: one.chain, network: one.network }, counts: pick(one) }
    })
  times(
    'portolan_block_to_list_seconds',
    'From the time of a block to the moment when its transfers are listed.',
    ({ stored }) => stored,
  )
  times(
    'portolan_balance_lag_seconds',
    'From the time of a block to the moment when all balances that it made due are read.',
    ({ settled }) => settled,
  )
}

type Tracker = TrackerStatus &
  TrackerHealth & { gaps: { from_block: number; to_block: number }[]; transactions?: SenderStatus }

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
