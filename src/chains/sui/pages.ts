// Reading history by pages of checkpoints. Some nodes offer lists, others single checkpoints only; a page may end early, and the
// next one begins where it ended.

import type { GrpcTypes } from '@mysten/sui/grpc'
import { UnreadableError } from '../chain.ts'
import { toHeader } from './checkpoint.ts'
import { statusOf } from './client.ts'
import type { Given } from './feed.ts'
import type { SuiNode, SuiNodes } from './nodes.ts'

/** What a node gives at once at most. */
const pageSize = 50
/** How many are asked for at once where there are no lists. */
const singles = 16
// Pages that are fetched while the reader works on one.
const pagesAhead = 2

/** Checks that an answer can be read and is what was asked for, or a beginning of it. */
const checked = (from: number, found: readonly GrpcTypes.Checkpoint[]): GrpcTypes.Checkpoint[] => {
  for (const [index, checkpoint] of found.entries()) {
    const number = numberOf(checkpoint)
    // What comes before one that cannot be read can be used.
    if (number !== from + index && index > 0) return found.slice(0, index)
    if (number !== from + index)
      throw new UnreadableError(`asked for checkpoint ${from + index}, got ${number}`)
  }
  return [...found]
}

const numberOf = (checkpoint: GrpcTypes.Checkpoint): number | undefined => {
  try {
    return toHeader(checkpoint).number
  } catch {
    return undefined
  }
}

async function fetchFrom(
  node: SuiNode,
  { from, to }: { from: number; to: number },
  signal: AbortSignal,
): Promise<GrpcTypes.Checkpoint[]> {
  if (node.lists)
    try {
      return checked(from, await node.client.list(from, to, signal))
    } catch (error) {
      const status = statusOf(error)
      // A large checkpoint can take longer than a list may; one by itself has a minute.
      if (status === 'DEADLINE_EXCEEDED')
        return checked(from, [await node.client.checkpoint(from, signal)])
      if (status !== 'UNIMPLEMENTED') throw error
      node.lists = false
    }
  const numbers = Array.from({ length: Math.min(to - from + 1, singles) }, (_, i) => from + i)
  return checked(
    from,
    await Promise.all(numbers.map((number) => node.client.checkpoint(number, signal))),
  )
}

/** Fetches consecutive checkpoints, beginning with `from`, from a node that has it. */
export const fetchPage = (
  nodes: SuiNodes,
  { from, to }: { from: number; to: number },
  signal: AbortSignal,
): Promise<Given[]> =>
  nodes.ask({ has: from }, signal, async (node, limited) => {
    const last = Math.min(to, from + pageSize - 1, node.head)
    const found = await fetchFrom(node, { from, to: last }, limited)
    return found.map((checkpoint) => ({ checkpoint, node }))
  })

/** Fetches pages, some of them ahead of the reader. */
export function createPages(nodes: SuiNodes, signal: AbortSignal) {
  const pages = new Map<number, Promise<Given[]>>()
  let failedFrom: number | undefined
  const begin = (from: number, to: number): Promise<Given[]> => {
    const known = pages.get(from)
    if (known) return known
    // Up to a page that is being fetched, after one that was cut short.
    const next = Math.min(to + 1, ...[...pages.keys()].filter((begun) => begun > from))
    // After a failure alone: the others of its page may be readable.
    const page = fetchPage(nodes, { from, to: from === failedFrom ? from : next - 1 }, signal)
    pages.set(from, page)
    // The reader of this page gets the failure.
    page.catch(() => {})
    return page
  }
  return {
    /** The checkpoints from `from` on; `to` is the last one that is wanted. */
    take: async (from: number, to: number): Promise<Given[]> => {
      for (const begun of pages.keys()) if (begun < from) pages.delete(begun)
      const page = begin(from, to)
      for (let ahead = 1; ahead <= pagesAhead; ahead++) {
        const next = from + ahead * pageSize
        if (next <= to) begin(next, to)
      }
      try {
        return await page
      } catch (error) {
        failedFrom = from
        throw error
      } finally {
        pages.delete(from)
      }
    },
    clear: (): void => pages.clear(),
  }
}
