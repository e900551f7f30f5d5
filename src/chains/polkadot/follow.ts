import type { Clock } from '../../lib/clock.ts'
import {
  BlockMissingError,
  type BlockRef,
  type ChainBlock,
  type ChainEvent,
  type Position,
} from '../chain.ts'
import { createFetchAhead } from '../follow/fetch-ahead.ts'
import { findGapEnd, takeLinked } from '../follow/linked.ts'
import type { Fetch } from './fetch.ts'
import { isHash } from './header.ts'
import type { Nodes } from './nodes.ts'

/** What following needs. */
export type FollowTools = {
  nodes: Nodes
  clock: Clock
  fetch: Fetch
  /** How long to wait for news before looking again. */
  pollMs: number
  /** Blocks that are fetched at once. */
  inFlight: number
  /** How long a missing state is retried before it counts as lost. */
  patienceMs: number
  /** The same while some node that may have it is away. */
  longPatienceMs: number
}

const maxBatch = 50
const pauseMs = 200

/** Gives the final blocks after a position (see `Chain.follow`). */
export async function* follow(
  tools: FollowTools,
  after: Position,
  outer: AbortSignal,
): AsyncGenerator<ChainEvent> {
  const { nodes, clock, fetch, pollMs } = tools
  const own = new AbortController()
  const signal = AbortSignal.any([outer, own.signal])
  const ahead = createFetchAhead({
    fetchBlock: (number) => tools.fetch.block(number, signal),
    inFlight: tools.inFlight,
    maxBatch,
  })
  let position: BlockRef = after
  let missingSince: number | undefined
  const find = async (number: number): Promise<ChainBlock | undefined> => {
    try {
      return await fetch.block(number, signal)
    } catch (error) {
      if (error instanceof BlockMissingError) return undefined
      throw error
    }
  }
  let news = Promise.withResolvers<void>()
  const unsubscribe = nodes.set.onHead(() => news.resolve())
  try {
    if (await hasLeft(tools, position, signal)) {
      yield { kind: 'fork' }
      return
    }
    for (;;) {
      const heard = news.promise
      const head = nodes.set.best()
      if (head <= position.number) {
        const isNews = await waitFor(heard, pollMs, clock, signal)
        news = Promise.withResolvers()
        // Silence of the chain must not be mistaken for silence of all nodes.
        if (!isNews) await askFinal(nodes, signal)
        continue
      }
      const next = position.number + 1
      let blocks: ChainBlock[]
      try {
        blocks = await ahead.take(next, head)
        missingSince = undefined
      } catch (error) {
        if (!(error instanceof BlockMissingError)) throw error
        missingSince ??= clock.now()
        const patience = error.isCertain ? tools.patienceMs : tools.longPatienceMs
        if (clock.now() - missingSince < patience) {
          await clock.sleep(pauseMs, signal)
          continue
        }
        const to = await findGapEnd(find, { from: next, head })
        if (!to) {
          await waitFor(heard, pollMs, clock, signal)
          news = Promise.withResolvers()
          continue
        }
        yield { kind: 'gap', from: next, to, reason: error.message }
        position = to
        missingSince = undefined
        continue
      }
      const linked = takeLinked(position, blocks)
      if (linked.length < blocks.length) ahead.forget()
      if (linked.length > 0) {
        position = linked.at(-1)!
        yield { kind: 'blocks', blocks: linked, head: Math.max(head, nodes.set.best()) }
      } else if (await hasLeft(tools, position, signal)) {
        yield { kind: 'fork' }
        return
      } else await clock.sleep(pauseMs, signal)
    }
  } finally {
    unsubscribe()
    own.abort()
  }
}

/**
 * Whether the final chain has another block at a position's height. Final blocks do not go, so that
 * one node which says so beside others which do not is a node that lies or stands on a fork.
 */
async function hasLeft(
  { nodes }: FollowTools,
  position: BlockRef,
  signal: AbortSignal,
): Promise<boolean> {
  const hashes = await nodes.set.askAll({
    signal,
    timeoutMs: 5_000,
    ask: ({ connection }, limited) =>
      connection.request('chain_getBlockHash', [position.number], limited),
  })
  const expected = `0x${position.hash.toString('hex')}`
  const others = hashes.filter(({ answer }) => isHash(answer) && answer !== expected)
  if (hashes.every(({ answer }) => answer !== expected)) return others.length > 0
  for (const { node } of others) nodes.set.exclude(node)
  return false
}

/** Whether there was news before the time was over. */
async function waitFor(
  heard: Promise<void>,
  pollMs: number,
  clock: Clock,
  signal: AbortSignal,
): Promise<boolean> {
  const done = new AbortController()
  try {
    const time = clock.sleep(pollMs, AbortSignal.any([signal, done.signal])).then(() => false)
    return await Promise.race([heard.then(() => true), time])
  } finally {
    done.abort(new Error('heard of a block'))
    signal.throwIfAborted()
  }
}

/** Throws when no node answers. */
const askFinal = (nodes: Nodes, signal: AbortSignal): Promise<string> =>
  nodes.ask({
    method: 'chain_getFinalizedHead',
    params: [],
    signal,
    accept: (result) => (isHash(result) ? result : undefined),
  })
