import type { BlockRef } from '../chain.ts'
import { toHeader } from './checkpoint.ts'
import type { Nodes } from './nodes.ts'

/** A node that is away may still have the history, most of all an archive: it is waited for longer. */
const absentFactor = 20

/**
 * The last of the checkpoints from `next` on that no node has any more, named by the first one that
 * is there. Undefined while some node has them, or may have them and is away.
 */
export async function findGapEnd(
  {
    nodes,
    next,
    waitedMs,
    patienceMs,
  }: { nodes: Nodes; next: number; waitedMs: number; patienceMs: number },
  signal: AbortSignal,
): Promise<BlockRef | undefined> {
  if (waitedMs < patienceMs) return undefined
  await nodes.probe()
  signal.throwIfAborted()
  const ours = nodes.nodes.filter(({ state, foreign }) => state !== 'wrong_chain' && !foreign)
  const present = ours.filter(({ state }) => state === 'up')
  const lowest = Math.min(...present.map((node) => node.lowest))
  if (present.length === 0 || lowest <= next) return undefined
  if (present.length < ours.length && waitedMs < patienceMs * absentFactor) return undefined
  try {
    const first = await nodes.ask({ has: lowest }, signal, (node, limited) =>
      node.client.checkpoint(lowest, limited),
    )
    return { number: lowest - 1, hash: toHeader(first).parent_hash }
  } catch {
    // Nodes prune on while we look: next time it is a higher one.
    signal.throwIfAborted()
    return undefined
  }
}
