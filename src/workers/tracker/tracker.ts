// The tracker: one leased loop per network that stores blocks, transfers and notifications in one transaction
// per block, removes what a reorganization orphans, and fills gaps. It uses storage and the chain. The stored
// chain is gapless, or its gaps are recorded, shown and retried.

import {
  BlockForgedError,
  type BlockRef,
  type Chain,
  type ChainEvent,
  type Position,
} from '../../chains/chain.ts'
import { type Clock, toTimestamp } from '../../lib/clock.ts'
import { createHistogram, type HistogramCounts, waitBounds } from '../../lib/histogram.ts'
import type { Log } from '../../lib/log.ts'
import { inSpan, type Tracing } from '../../lib/tracing.ts'
import type { Db } from '../../storage/pg/database.ts'
import { findCursor } from '../../storage/tracking/blocks.ts'
import { listOpenGaps } from '../../storage/tracking/gaps.ts'
import { type NetworkName, setTraced } from '../../storage/tracking/networks.ts'
import { startComparing } from '../balances/comparing.ts'
import { startReconciling } from '../balances/reconciling.ts'
import type { RoundTimes } from '../balances/rounds.ts'
import { startSettling } from '../balances/settling.ts'
import { createMonths } from '../janitor/months.ts'
import { type HeldLease, type LeasedState, startLeased } from '../lease.ts'
import { createAddressRulesStore } from './address-rules.ts'
import { findBeginning, findPosition } from './beginning.ts'
import { findReadable } from './find-readable.ts'
import { type RefillTimes, startRefilling } from './refill.ts'
import { startReleasing } from './releasing.ts'
import { DivergedError, findAncestor, reorganizationWindow, rollBack } from './reorg.ts'
import { storeBlocks, storeGap } from './store.ts'
import type { TrackerTools } from './tools.ts'
import { createTroubles, type TroublePatience } from './trouble.ts'

/** What a tracker is made of. */
export type TrackerOptions = {
  db: Db
  clock: Clock
  log: Log
  /** An id of this process. */
  holder: string
  network_id: number
  /** The names of the chain and the network, for logs and the lease. */
  name: NetworkName
  chain: Chain
  /** The networks whose nodes this one may not have; asked at each begin. */
  others?(): readonly NetworkName[]
  ttlMs?: number
  /** How many blocks back a reorganization may reach. */
  window?: number
  /** How many blocks behind the head reading balances waits. */
  farBehind?: number
  /** When balances that follow by net changes are compared with the nodes. */
  reconcile?: Partial<RoundTimes>
  /** When gaps are asked for again. */
  refill?: Partial<RefillTimes>
  /** How long a block that cannot be read holds up those after it. */
  patience?: Partial<TroublePatience>
  /** Traces a share of the blocks. */
  tracing?: Tracing | undefined
}

/** The state of a tracker, for `/status` and metrics. */
export type TrackerStatus = {
  chain: string
  network: string
  state: LeasedState
  block_number: number | null
  head: number | null
  reorganizations: number
  /** Blocks in which a node gave a false sender. */
  forged_blocks: number
  /** Blocks of gaps that were filled later, and attempts that brought nothing. */
  refill: { filled: number; failed: number }
  unknown_kinds: Record<string, number>
  /** How many balances were compared with the chain, differed, and could not be compared. */
  reconciliation?: { checked: number; repaired: number; skipped: number }
  /** Empty when tracking works again. */
  last_error: string
  last_error_time: string | null
}

/** A tracker of one chain and network. */
export type Tracker = {
  status(): TrackerStatus
  /** Since when this process has failed to track without storing anything, and why. */
  failing(): { since: number; reason: string } | undefined
  /** The gaps that no node could fill. */
  gaps(): Promise<{ from_block: number; to_block: number; reason: string }[]>
  /** From the time of a block to its commit, and to the last balance that it made due; in seconds. */
  timings(): { stored: HistogramCounts; settled: HistogramCounts }
  stop(): Promise<void>
}

// A node that lags cannot name the new branch yet. One second is about a block of a fast chain.
const waitForBranchMs = 1_000

/** Follows a chain and stores what concerns the tracked addresses, in one process at a time. */
export function startTracker(options: TrackerOptions): Tracker {
  const {
    db,
    clock,
    log,
    holder,
    network_id,
    name,
    chain,
    ttlMs,
    window = reorganizationWindow,
    farBehind = 100,
    tracing,
  } = options
  const storeAddressRules = createAddressRulesStore({ db, network_id, chain })
  const seen: Seen = {
    ...{ block_number: null, head: null, isReleaseLeft: false, isTraced: false },
    ...{ reorganizations: 0, unknown_kinds: {} },
  }
  const reconciliation = { checked: 0, repaired: 0, skipped: 0 }
  // Only where a stored balance can drift: sums of net changes, and tokens that change without an
  // event.
  const isReconciled = chain.balances === 'delta' || chain.changesSilently !== undefined
  const refill = { filled: 0, failed: 0 }
  // From the time of a block, so that a slow node shows as well as a slow database.
  const stored = createHistogram(waitBounds)
  const settled = createHistogram(waitBounds)
  const since = secondsSince(clock)
  const troubles = createTroubles({ clock, patience: options.patience })
  const take = createTaking(options, { seen, farBehind, troubles, stored })
  let forged = 0

  const begin = async (tools: TrackerTools, signal: AbortSignal): Promise<Position> => {
    const position = await findBeginning(tools, options.others?.(), signal)
    // Absent at the first start, when nothing is known of it.
    seen.isTraced = position.isTraced ?? seen.isTraced
    return position
  }

  /**
   * Goes past a block that has held up the chain for too long: it is a gap then, and refilled. Only
   * failures count during which the nodes could name the block: an outage of the nodes loses nothing.
   */
  const skipUnreadable = async (
    tools: TrackerTools,
    error: unknown,
    signal: AbortSignal,
  ): Promise<void> => {
    const cursor = await findCursor(db, network_id)
    if (!cursor) return
    const position = { number: cursor.block_number, hash: cursor.block_hash }
    const from = position.number + 1
    troubles.failed(from, error)
    if (!troubles.isAny()) return
    const to = await findReadable(chain, position, signal).catch(() => undefined)
    if (!to) troubles.forget()
    const reason = troubles.lasting(from)
    if (!to || reason === undefined) return
    await take(tools, position, { kind: 'gap', from, to, reason }, signal)
    troubles.skipped(to.number)
  }

  const run = async (lease: HeldLease, signal: AbortSignal, works: () => void): Promise<void> => {
    const tools: TrackerTools = { db, clock, network_id, chain, lease, window, tracing }
    let position = await begin(tools, signal)
    await storeAddressRules()
    seen.block_number = position.number
    const onSettled = (time: number) => settled.add(since(time))
    const settling = startSettling({ tools, log, signal, farBehind, onSettled })
    const releasing = startReleasing({ tools, log, signal })
    const beginReconciling = chain.changesSilently === 'tokens' ? startComparing : startReconciling
    const reconciling = isReconciled
      ? beginReconciling({ tools, log, signal, counts: reconciliation, ...options.reconcile })
      : undefined
    const refilling = startRefilling({
      tools,
      log,
      signal,
      counts: refill,
      times: options.refill,
      onStored: releasing.wake,
    })
    try {
      while (!signal.aborted) {
        for await (const event of chain.follow(position, signal)) {
          if (event.kind === 'fork') {
            position = await reorganize(tools, { seen, name, log }, signal)
            if (seen.isReleaseLeft) releasing.wake()
            break
          }
          seen.head = event.kind === 'blocks' ? event.head : seen.head
          const taken = await take(tools, position, event, signal).catch((error: unknown) => {
            if (!(error instanceof BlockForgedError)) throw error
            forged++
            log.error(
              { ...name, reason: error.message },
              'node returned a forged block, asking another node',
            )
            return undefined
          })
          if (!taken) {
            position = await begin(tools, signal)
            break
          }
          position = taken
          await storeAddressRules()
          works()
          const time = event.kind === 'blocks' ? event.blocks.at(-1)?.time : undefined
          settling.wake({ behind: (seen.head ?? 0) - position.number, time })
          if (seen.isReleaseLeft) releasing.wake()
        }
        settling.wake({ behind: 0 })
      }
    } catch (error) {
      // The lease ends the run and starts it again, so that each failure of a block passes here
      // once.
      if (!signal.aborted) await skipUnreadable(tools, error, signal)
      throw error
    } finally {
      await Promise.all([settling.stop(), releasing.stop(), reconciling?.stop(), refilling.stop()])
    }
  }

  const leased = startLeased({
    db,
    clock,
    log,
    holder,
    name: `tracker:${name.chain}:${name.network}`,
    run,
    ...(ttlMs !== undefined && { ttlMs }),
  })
  const lastError = () => leased.lastError()?.message ?? ''
  return {
    failing: () => {
      const since = leased.failingSince()
      return since === undefined ? undefined : { since, reason: lastError() }
    },
    status: () => {
      return {
        ...name,
        state: leased.state(),
        block_number: seen.block_number,
        // By itself: a chain that cannot be read must not look like a stopped one.
        head: highest(seen.head, chain.newest()),
        reorganizations: seen.reorganizations,
        forged_blocks: forged,
        refill: { ...refill },
        unknown_kinds: { ...seen.unknown_kinds },
        ...(isReconciled && { reconciliation: { ...reconciliation } }),
        last_error: lastError(),
        last_error_time: timeOf(leased.lastError()),
      }
    },
    gaps: () => listOpenGaps(db, network_id),
    timings: () => ({ stored: stored.read(), settled: settled.read() }),
    stop: leased.stop,
  }
}

/** What one process has seen of the chain. */
type Seen = {
  block_number: number | null
  head: number | null
  /** Whether notifications are left that the last block has released. */
  isReleaseLeft: boolean
  /** Once a block came with traces, the network counts as traced: a later block without them lacks something. */
  isTraced: boolean
  reorganizations: number
  unknown_kinds: Record<string, number>
}

/** Stores blocks, or a gap, after a position. */
type Take = (
  tools: TrackerTools,
  after: Position,
  event: Exclude<ChainEvent, { kind: 'fork' }>,
  signal: AbortSignal,
) => Promise<Position>

function createTaking(
  { db, clock, log, network_id, name, tracing }: TrackerOptions,
  own: {
    seen: Seen
    farBehind: number
    troubles: ReturnType<typeof createTroubles>
    stored: ReturnType<typeof createHistogram>
  },
): Take {
  const { seen, farBehind, troubles, stored } = own
  const ensureMonths = createMonths(db)
  const since = secondsSince(clock)

  return async (tools, after, event, signal) => {
    if (event.kind === 'gap') {
      const { from, to, reason } = event
      log.error(
        { ...name, from, to: to.number, reason },
        'unreadable blocks skipped, will retry later',
      )
      await storeGap(tools, after, event)
      seen.isReleaseLeft = true
      seen.block_number = to.number
      return { ...to, isTraced: seen.isTraced }
    }
    await ensureMonths(event.blocks.map(({ time }) => time))
    const incomplete = event.blocks.filter(({ lacks }) => lacks !== undefined)
    if (incomplete.length > 0)
      log.error(
        {
          ...name,
          from: incomplete[0]!.number,
          to: incomplete.at(-1)!.number,
        },
        `blocks of which not everything can be known: ${incomplete[0]!.lacks}`,
      )
    // Once a block came with traces, the network counts as traced: a later block without them lacks
    // something.
    if (!seen.isTraced && event.blocks.some((block) => block.isTraced === true)) {
      await setTraced(db, network_id, true)
      seen.isTraced = true
    }
    const backlogUntil = event.head - farBehind
    let position = after
    // After a failure one by one, so that those before the block that fails are stored.
    const batches = troubles.isAny() ? event.blocks.map((block) => [block]) : [event.blocks]
    for (const blocks of batches) {
      const span = tracing && beginSpan(tracing, { network_id, name }, blocks)
      const store = { after: position, backlogUntil, signal }
      const result = await inSpan(span, () => storeBlocks(tools, blocks, store))
      seen.isReleaseLeft = result.notifications.isMore
      for (const { time } of blocks) stored.add(since(time), span?.trace_id)
      for (const [kind, count] of Object.entries(result.unknown_kinds))
        seen.unknown_kinds[kind] = (seen.unknown_kinds[kind] ?? 0) + count
      position = blocks.at(-1)!
      seen.block_number = position.number
      troubles.passed(position.number)
    }
    return { ...position, isTraced: seen.isTraced }
  }
}

/** The trace of the last of these blocks, where that is traced. Deliveries continue it. */
function beginSpan(
  tracing: Tracing,
  { network_id, name }: Pick<TrackerOptions, 'network_id' | 'name'>,
  blocks: readonly BlockRef[],
) {
  const last = blocks.at(-1)!
  const as = tracing.blockSpan(network_id, last.number)
  if (!as) return undefined
  const { chain, network } = name
  const fields = { 'portolan.chain': `${chain}/${network}`, 'portolan.block_number': last.number }
  return tracing.begin({ name: 'block', fields, as })
}

/** Rolls back to the last block that both branches have, as soon as a node can name it. */
async function reorganize(
  tools: TrackerTools,
  { seen, name, log }: { seen: Seen; name: NetworkName; log: Log },
  signal: AbortSignal,
): Promise<Position> {
  const { chain, clock } = tools
  if (!chain.reorganizes) {
    const message = `the chain has no longer the block at ${seen.block_number}`
    log.error({ ...name, block_number: seen.block_number }, 'chain diverged')
    throw new DivergedError(message)
  }
  for (;;) {
    const ancestor = await findAncestor(tools, signal)
    if (ancestor) {
      seen.isReleaseLeft = await rollBack(tools, ancestor)
      seen.reorganizations++
      log.info({ ...name, to: ancestor.number }, 'chain reorganized')
      // As it is stored: without what is known of the network, an untraced block would not be a gap.
      return (await findPosition(tools)) ?? ancestor
    }
    await clock.sleep(waitForBranchMs, signal)
  }
}

const secondsSince =
  (clock: Clock) =>
  (time: number): number =>
    Math.max(0, clock.now() - time) / 1000

const timeOf = (error: { time: number } | undefined): string | null =>
  error ? toTimestamp(error.time) : null

const highest = (one: number | null, other: number | undefined): number | null =>
  one === null ? (other ?? null) : Math.max(one, other ?? one)
