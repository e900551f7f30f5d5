import { BlockForgedError, type Chain, type ChainEvent, type Position } from '../chains/chain.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import { findCursor, findGapAt, listOpenGaps } from '../storage/blocks.ts'
import { pinIdentity } from '../storage/chains.ts'
import type { Db } from '../storage/database.ts'
import { createMonths } from './months.ts'
import { type ReconcileTimes, startReconciling } from './reconciling.ts'
import { startReleasing } from './releasing.ts'
import { DivergedError, findAncestor, reorganizationWindow, rollBack } from './reorg.ts'
import { type HeldLease, type LeasedState, startLeased } from './runner.ts'
import { startSettling } from './settling.ts'
import { storeBeginning, storeBlocks, storeGap, type TrackerTools } from './tracker-store.ts'

/** What a tracker is made of. */
export type TrackerOptions = {
  db: Db
  clock: Clock
  log: Log
  /** An id of this process. */
  holder: string
  chain_id: number
  network: string
  chain: Chain
  ttlMs?: number
  /** How many blocks back a reorganization may reach. */
  window?: number
  /** How many blocks behind the head reading balances waits. */
  farBehind?: number
  /** When balances that follow by net changes are compared with the nodes. */
  reconcile?: Partial<ReconcileTimes>
}

/** How a tracker stands, for `/status` and metrics. */
export type TrackerStatus = {
  chain: string
  network: string
  state: LeasedState
  block_number: number | null
  head: number | null
  reorganizations: number
  /** Blocks in which a node gave a false sender. */
  forged_blocks: number
  unknown_kinds: Record<string, number>
  /** On chains whose balances follow by net changes: how many were compared and differed. */
  reconciliation?: { checked: number; repaired: number }
  last_error: string
}

/** A tracker of one chain and network. */
export type Tracker = {
  status(): TrackerStatus
  /** Since when this process has failed to track without storing anything, and why. */
  failing(): { since: number; reason: string } | undefined
  /** The gaps that no node could fill. */
  gaps(): Promise<{ from_block: number; to_block: number; reason: string }[]>
  stop(): Promise<void>
}

const waitForBranchMs = 1_000

/** The chain's nodes are not those that the rows came from. */
export class ForeignChainError extends Error {
  override name = 'ForeignChainError'
}

/** Follows a chain and stores what concerns the tracked addresses, in one process at a time. */
export function startTracker(options: TrackerOptions): Tracker {
  const {
    db,
    clock,
    log,
    holder,
    chain_id,
    network,
    chain,
    ttlMs,
    window = reorganizationWindow,
    farBehind = 100,
  } = options
  const ensureMonths = createMonths(db)
  const seen = { block_number: null as number | null, head: null as number | null }
  const unknown_kinds: Record<string, number> = {}
  const reconciliation = { checked: 0, repaired: 0 }
  const isReconciled = chain.balances === 'delta' || chain.changesSilently === true
  let reorganizations = 0
  let isReleaseLeft = false
  let forged = 0

  const begin = async (tools: TrackerTools, signal: AbortSignal): Promise<Position> => {
    const identity = await chain.identity(signal)
    const pinned = await pinIdentity(db, chain_id, identity)
    if (pinned !== identity)
      throw new ForeignChainError(
        `the nodes are of another chain (${identity}) than the stored blocks (${pinned}): name nodes of that chain, or another network; of local chains, start with --reset`,
      )
    const cursor = await findCursor(db, chain_id)
    if (cursor) {
      const { block_number: number, block_hash: hash, detail } = cursor
      const lacks = await findGapAt(db, chain_id, number)
      return { number, hash, detail, ...(lacks !== undefined && { lacks }) }
    }
    const head = await chain.head(signal)
    await storeBeginning(tools, head)
    return head
  }

  const take = async (
    tools: TrackerTools,
    after: Position,
    event: Exclude<ChainEvent, { kind: 'fork' }>,
    signal: AbortSignal,
  ): Promise<Position> => {
    if (event.kind === 'gap') {
      log.error({ chain: chain.service, network, ...event }, 'blocks that no node has are skipped')
      await storeGap(tools, after, event)
      isReleaseLeft = true
      return event.to
    }
    await ensureMonths(event.blocks.map(({ time }) => time))
    const incomplete = event.blocks.filter(({ lacks }) => lacks !== undefined)
    if (incomplete.length > 0)
      log.error(
        {
          chain: chain.service,
          network,
          from: incomplete[0]!.number,
          to: incomplete.at(-1)!.number,
        },
        `blocks of which not everything can be known: ${incomplete[0]!.lacks}`,
      )
    const backlogUntil = event.head - farBehind
    const stored = await storeBlocks(tools, event.blocks, { after, backlogUntil, signal })
    isReleaseLeft = stored.notifications.isMore
    for (const [kind, count] of Object.entries(stored.unknown_kinds))
      unknown_kinds[kind] = (unknown_kinds[kind] ?? 0) + count
    return event.blocks.at(-1)!
  }

  const reorganize = async (tools: TrackerTools, signal: AbortSignal): Promise<Position> => {
    if (!chain.reorganizes) {
      const message = `the chain has no longer the block at ${seen.block_number}`
      log.error(
        { chain: chain.service, network, block_number: seen.block_number },
        'chain diverged',
      )
      throw new DivergedError(message)
    }
    for (;;) {
      const ancestor = await findAncestor(tools, signal)
      if (ancestor) {
        await rollBack(tools, ancestor)
        reorganizations++
        log.info({ chain: chain.service, network, to: ancestor.number }, 'chain reorganized')
        return ancestor
      }
      await clock.sleep(waitForBranchMs, signal)
    }
  }

  const run = async (lease: HeldLease, signal: AbortSignal, works: () => void): Promise<void> => {
    const tools: TrackerTools = { db, clock, chain_id, chain, lease, window }
    let position = await begin(tools, signal)
    seen.block_number = position.number
    const settling = startSettling({ tools, log, signal, farBehind })
    const releasing = startReleasing({ tools, log, signal })
    const reconciling = isReconciled
      ? startReconciling({ tools, log, signal, counts: reconciliation, ...options.reconcile })
      : undefined
    try {
      while (!signal.aborted) {
        for await (const event of chain.follow(position, signal)) {
          if (event.kind === 'fork') {
            position = await reorganize(tools, signal)
            break
          }
          const taken = await take(tools, position, event, signal).catch((error: unknown) => {
            if (!(error instanceof BlockForgedError)) throw error
            forged++
            log.error(
              { chain: chain.service, network, reason: error.message },
              'node returned a forged block, asking another node',
            )
            return undefined
          })
          if (!taken) break
          position = taken
          works()
          seen.block_number = position.number
          seen.head = event.kind === 'blocks' ? event.head : seen.head
          settling.wake({ behind: (seen.head ?? 0) - position.number })
          if (isReleaseLeft) releasing.wake()
        }
        settling.wake({ behind: 0 })
      }
    } finally {
      await Promise.all([settling.stop(), releasing.stop(), reconciling?.stop()])
    }
  }

  const leased = startLeased({
    db,
    clock,
    log,
    holder,
    name: `tracker:${chain.service}:${network}`,
    run,
    ...(ttlMs !== undefined && { ttlMs }),
  })
  const lastError = () => {
    const error = leased.lastError()
    return error instanceof Error ? error.message : ''
  }
  return {
    failing: () => {
      const since = leased.failingSince()
      return since === undefined ? undefined : { since, reason: lastError() }
    },
    status: () => {
      return {
        chain: chain.service,
        network,
        state: leased.state(),
        ...seen,
        reorganizations,
        forged_blocks: forged,
        unknown_kinds: { ...unknown_kinds },
        ...(isReconciled && { reconciliation: { ...reconciliation } }),
        last_error: lastError(),
      }
    },
    gaps: () => listOpenGaps(db, chain_id),
    stop: leased.stop,
  }
}
