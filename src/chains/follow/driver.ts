// Following a chain: one loop that gives every block after a position in order (see `Chain.follow`). A
// family provides a source: how blocks are fetched, how it waits at the head, and what it does about
// blocks that it cannot get. This folder uses `chain.ts` and the set of nodes. It guarantees that each
// block is the child of the one before, and that nothing stays open after the reader has left.
import type { Clock } from '../../lib/clock.ts'
import type { BlockRef, ChainBlock, ChainEvent, Position } from '../chain.ts'
import { takeLinked } from './linked.ts'

/** Blocks that could not be fetched. */
export type Trouble = { next: number; head: number; error: unknown; waitedMs: number }

/** What a family provides. */
export type Source = {
  /** The newest block that is known without asking; -1 before the first. */
  head(): number
  /** Waits for a block after this one, for a bounded time. Throws when no node answers. */
  news(after: number): Promise<void>
  /** Consecutive blocks from `next` on, at least one; not beyond `head`. */
  take(next: number, head: number): Promise<ChainBlock[]>
  /** Discards what was fetched ahead: it does not belong to the chain of the position. */
  forget(): void
  /**
   * Decides about blocks that could not be fetched: undefined to try again, the end of a gap to continue
   * behind it. Throws to leave the decision to the reader.
   */
  lost(trouble: Trouble): Promise<{ to: BlockRef; reason: string } | undefined>
  /** Whether the chain has another block instead of this one. */
  hasLeft(position: BlockRef, waitedMs: number): Promise<boolean>
  stop?(): Promise<void> | void
}

const pauseMs = 100

/** Gives the blocks after a position. */
export async function* followSource(
  { clock, open }: { clock: Clock; open(signal: AbortSignal): Source },
  after: Position,
  outer: AbortSignal,
): AsyncGenerator<ChainEvent> {
  const own = new AbortController()
  const signal = AbortSignal.any([outer, own.signal])
  const source = open(signal)
  let position: BlockRef = after
  let troubleSince: number | undefined
  const waitedMs = (): number => {
    troubleSince ??= clock.now()
    return clock.now() - troubleSince
  }
  try {
    if (await source.hasLeft(position, 0)) {
      yield { kind: 'fork' }
      return
    }
    for (;;) {
      signal.throwIfAborted()
      const head = source.head()
      const next = position.number + 1
      if (head < next) {
        await source.news(position.number)
        continue
      }
      let blocks: ChainBlock[]
      try {
        blocks = await source.take(next, head)
      } catch (error) {
        signal.throwIfAborted()
        const gap = await source.lost({ next, head, error, waitedMs: waitedMs() })
        if (gap) {
          yield { kind: 'gap', from: next, ...gap }
          position = gap.to
          troubleSince = undefined
        } else await clock.sleep(pauseMs, signal)
        continue
      }
      const linked = takeLinked(position, blocks)
      if (linked.length > 0) {
        troubleSince = undefined
        position = linked.at(-1)!
        yield { kind: 'blocks', blocks: linked, head: Math.max(source.head(), position.number) }
      }
      if (linked.length === blocks.length) continue
      source.forget()
      if (linked.length > 0) continue
      if (await source.hasLeft(position, waitedMs())) {
        yield { kind: 'fork' }
        return
      }
      await clock.sleep(pauseMs, signal)
    }
  } finally {
    own.abort(new Error('following ended'))
    await source.stop?.()
  }
}
