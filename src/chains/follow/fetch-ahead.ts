import type { ChainBlock } from '../chain.ts'

/** Blocks that are fetched ahead of their reader. */
export type FetchAhead = {
  /** The next block, and those after it that are there already. */
  take(next: number, head: number): Promise<ChainBlock[]>
  forget(): void
}

type Fetched = { done: ChainBlock | undefined; promise: Promise<ChainBlock> }

/** Fetches a bounded number of blocks ahead of the reader. */
export function createFetchAhead(options: {
  fetchBlock(number: number): Promise<ChainBlock>
  /** How many are under way at most. */
  inFlight: number
  /** How many are given at once at most. */
  maxBatch: number
}): FetchAhead {
  const { fetchBlock, inFlight, maxBatch } = options
  const fetched = new Map<number, Fetched>()
  const begin = (number: number): void => {
    const promise = fetchBlock(number)
    const entry: Fetched = { done: undefined, promise }
    fetched.set(number, entry)
    promise.then(
      (block) => {
        entry.done = block
      },
      // The reader of this number gets the failure; afterwards it is retried.
      () => {},
    )
  }
  const beginFrom = (next: number, head: number): void => {
    const last = Math.min(head, next + inFlight - 1)
    for (let number = next; number <= last; number++) if (!fetched.has(number)) begin(number)
  }
  return {
    take: async (next, head) => {
      for (const number of fetched.keys()) if (number < next) fetched.delete(number)
      beginFrom(next, head)
      const blocks: ChainBlock[] = []
      try {
        blocks.push(await fetched.get(next)!.promise)
      } finally {
        fetched.delete(next)
      }
      for (let number = next + 1; blocks.length < maxBatch; number++) {
        const block = fetched.get(number)?.done
        if (!block) break
        blocks.push(block)
        fetched.delete(number)
      }
      // While these are stored, the next ones come: so the next batch is as large as it may be.
      beginFrom(next + blocks.length, head)
      return blocks
    },
    forget: () => fetched.clear(),
  }
}
