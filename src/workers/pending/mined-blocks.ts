import type { Change } from '../../chains/evm/canonical/canonical.ts'
import type { Head } from '../../chains/evm/pool/pool-types.ts'

/** A block whose transactions are to be marked as left, or as returned where the block has left the chain. */
export type BlockMark = Pick<Head, 'number' | 'hash'> & {
  /** `doubted`: the chain could not be linked, so it is to be asked whether the block is still on it. */
  kind: 'added' | 'removed' | 'doubted'
  /** How often nothing was read. */
  misses: number
}

/** The blocks that are to be marked, in the order of the switches, and what the last ones contain. */
export type MinedBlocks = {
  push(change: Change): void
  first(): BlockMark | undefined
  /** The first one is done. */
  shift(): void
  keep(block: Pick<Head, 'number' | 'hash'>, transactions: readonly Buffer[]): void
  find(hash: string): Buffer[] | undefined
  forget(hash: string): void
}

// The sweep finds out what is in blocks that were added and do not fit.
const mostMarks = 64
// Deeper than reorganizations are. Blocks of a larger one are read, which not every client serves.
const mostKept = 64
const hashBytes = 32

/** Keeps them. The transactions of a block are kept because many clients do not serve one that has left their chain. */
export function createMinedBlocks(): MinedBlocks {
  const marks: BlockMark[] = []
  // One buffer for each block: an object for each transaction takes several times as much. The first key is the oldest.
  const kept = new Map<string, { number: number; bytes: Buffer }>()

  const add = (kind: BlockMark['kind'], { number, hash }: Pick<Head, 'number' | 'hash'>) =>
    marks.push({ number, hash, kind, misses: 0 })

  return {
    push: ({ removed, added, isLost, droppedAbove = -1 }) => {
      const waiting = marks.filter(({ kind }) => kind === 'added')
      const known = [...kept].map(([hash, { number }]) => ({ hash, number }))
      const doubted = isLost ? [...known, ...waiting] : []
      for (const block of doubted) if (block.number > droppedAbove) add('doubted', block)
      for (const block of removed) add('removed', block)
      for (const block of added) add('added', block)
      // The first one is in work. Nothing else finds out what has left the chain.
      for (let at = marks.length - 1; at > 0 && marks.length > mostMarks; at--)
        if (marks[at]!.kind === 'added') marks.splice(at, 1)
      marks.splice(mostMarks)
    },
    first: () => marks[0],
    shift: () => void marks.shift(),
    keep: ({ number, hash }, transactions) => {
      kept.delete(hash)
      kept.set(hash, { number, bytes: Buffer.concat(transactions) })
      if (kept.size > mostKept) kept.delete(kept.keys().next().value!)
    },
    find: (hash) => {
      const bytes = kept.get(hash)?.bytes
      return (
        bytes &&
        Array.from({ length: bytes.length / hashBytes }, (_, at) =>
          bytes.subarray(at * hashBytes, (at + 1) * hashBytes),
        )
      )
    },
    forget: (hash) => void kept.delete(hash),
  }
}
