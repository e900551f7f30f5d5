import type { Clock } from '../../lib/clock.ts'
import {
  type BlockHeader,
  BlockMissingError,
  type BlockRef,
  type ChainBlock,
  type ChainEvent,
  ChainUnavailableError,
  type Position,
} from '../chain.ts'
import { createFetchAhead } from '../follow/fetch-ahead.ts'
import { findGapEnd, takeLinked } from '../follow/linked.ts'
import type { Fetcher } from './fetch.ts'
import type { Nodes } from './nodes.ts'
import { type RawBlockId, readBlockId } from './raw.ts'

/** What following needs. */
export type FollowTools = {
  nodes: Nodes
  fetcher: Fetcher
  clock: Clock
  header(number: number, signal: AbortSignal): Promise<BlockHeader | undefined>
  /** How often to look for a new block. */
  pollMs: number
  /** Blocks that are fetched at once. */
  inFlight: number
  /** How long a block that no node has is asked for again before it counts as lost. */
  patienceMs: number
}

const maxBatch = 50
const pauseMs = 100

/** Gives the blocks after a position (see `Chain.follow`). */
export async function* follow(
  tools: FollowTools,
  after: Position,
  outer: AbortSignal,
): AsyncGenerator<ChainEvent> {
  const { nodes, fetcher, clock, pollMs } = tools
  const own = new AbortController()
  const signal = AbortSignal.any([outer, own.signal])
  const ahead = createFetchAhead({
    fetchBlock: (number) => tools.fetcher.block(number, signal),
    inFlight: tools.inFlight,
    maxBatch,
  })
  let position: BlockRef = after
  let missingSince: number | undefined
  const find = async (number: number): Promise<ChainBlock | undefined> => {
    try {
      return await fetcher.block(number, signal)
    } catch (error) {
      if (error instanceof BlockMissingError) return undefined
      throw error
    }
  }
  const tops = readTops(after.detail)
  if (tops) fetcher.remember(after.number, tops)
  try {
    if (await hasLeft(tools, position, signal)) {
      yield { kind: 'fork' }
      return
    }
    for (;;) {
      const shown = nodes.set.best()
      const head = shown > position.number ? shown : await nodes.set.refreshAny(signal)
      if (head <= position.number) {
        await clock.sleep(pollMs, signal)
        continue
      }
      const next = position.number + 1
      let blocks: ChainBlock[]
      try {
        blocks = await ahead.take(next, head)
        missingSince = undefined
      } catch (error) {
        if (!(error instanceof BlockMissingError)) throw error
        // A block right at the head may be on its way still.
        missingSince ??= clock.now()
        if (clock.now() - missingSince < tools.patienceMs) {
          await clock.sleep(pauseMs, signal)
          continue
        }
        const to = await findGapEnd(find, { from: next, head })
        if (!to) throw error
        yield { kind: 'gap', from: next, to, reason: error.message }
        position = to
        missingSince = undefined
        continue
      }
      const linked = takeLinked(position, blocks)
      if (linked.length < blocks.length) ahead.forget()
      if (linked.length === 0) {
        // Some node is of another opinion: one that has the child of ours goes on with it.
        const child = await fetchChild(tools, position, signal)
        if (!child) {
          yield { kind: 'fork' }
          return
        }
        linked.push(child)
      }
      position = linked.at(-1)!
      yield { kind: 'blocks', blocks: linked, head }
    }
  } finally {
    own.abort()
  }
}

const readTops = (detail: unknown): RawBlockId[] | undefined => {
  const tops = (detail as { tops?: unknown } | null | undefined)?.tops
  const ids = Array.isArray(tops) ? tops.map(readBlockId) : [undefined]
  return ids.every((id) => id !== undefined) ? ids : undefined
}

/** Whether another block has a position's height. */
async function hasLeft(
  { header }: FollowTools,
  position: BlockRef,
  signal: AbortSignal,
): Promise<boolean> {
  const there = await header(position.number, signal).catch((error: unknown) => {
    if (error instanceof BlockMissingError) return undefined
    throw error
  })
  return there !== undefined && !there.hash.equals(position.hash)
}

async function fetchChild(
  tools: FollowTools,
  position: BlockRef,
  signal: AbortSignal,
): Promise<ChainBlock | undefined> {
  try {
    return await tools.fetcher.block(position.number + 1, signal, position.hash)
  } catch (error) {
    signal.throwIfAborted()
    if (!(error instanceof ChainUnavailableError)) throw error
    if (await hasLeft(tools, position, signal)) return undefined
    throw error
  }
}
