import type { ChainBlock } from '../chain.ts'

/** Blocks that are fetched ahead of their reader. */
export type FetchAhead = {
  /** The next block, and those after it that are there already. */
  take(next: number, head: number): Promise<ChainBlock[]>
  forget(): void
}

type Fetched = {
  state: 'under way' | 'done' | 'failed'
  block?: ChainBlock
  promise: Promise<ChainBlock>
}

/**
 * Fetches blocks ahead of the reader: a bounded number at once, until a whole batch waits. With a batch of only
 * those that were under way (32 instead of 50 blocks) the database spent 4 % more on each event of EVM.
 */
export function createFetchAhead(options: {
  fetchBlock(number: number): Promise<ChainBlock>
  /** How many are under way at most. */
  inFlight: number
  /** How many are given at once at most. */
  maxBatch: number
}): FetchAhead {
  const { fetchBlock, inFlight, maxBatch } = options
  const window = Math.max(inFlight, maxBatch)
  const fetched = new Map<number, Fetched>()
  let wanted = { next: 0, head: -1 }
  const begin = (number: number): void => {
    const promise = fetchBlock(number)
    const entry: Fetched = { state: 'under way', promise }
    fetched.set(number, entry)
    promise.then(
      (block) => {
        entry.state = 'done'
        entry.block = block
        if (fetched.get(number) === entry) fill()
      },
      // The reader of this number gets the failure; afterwards it is retried.
      () => {
        entry.state = 'failed'
      },
    )
  }
  const fill = (): void => {
    const { next, head } = wanted
    let underWay = 0
    for (const { state } of fetched.values()) if (state === 'under way') underWay++
    const last = Math.min(head, next + window - 1)
    for (let number = next; number <= last && underWay < inFlight; number++)
      if (!fetched.has(number)) {
        begin(number)
        underWay++
      }
  }
  return {
    take: async (next, head) => {
      for (const number of fetched.keys()) if (number < next) fetched.delete(number)
      if (!fetched.has(next)) begin(next)
      wanted = { next, head }
      fill()
      const blocks: ChainBlock[] = []
      try {
        blocks.push(await fetched.get(next)!.promise)
      } finally {
        fetched.delete(next)
      }
      for (let number = next + 1; blocks.length < maxBatch; number++) {
        const block = fetched.get(number)?.block
        if (!block) break
        blocks.push(block)
        fetched.delete(number)
      }
      // While these are stored, the next ones come: so the next batch is as large as it may be.
      wanted = { next: next + blocks.length, head }
      fill()
      return blocks
    },
    forget: () => fetched.clear(),
  }
}
