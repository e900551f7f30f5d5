import type { BlockRef } from '../chain.ts'
import { toHeader } from './checkpoint.ts'
import type { Nodes } from './nodes.ts'

/** An unreachable node, above all an archive, may still have the history: it is waited for longer. */
export const absentFactor = 20

/**
 * The last of the checkpoints from `next` on that no node has any more, named by the first one that
 * is there. Undefined while some node has them, or may have them and is unreachable.
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
  await Promise.allSettled(nodes.nodes.map((node) => nodes.refresh(node, signal)))
  signal.throwIfAborted()
  const ours = nodes.nodes.filter(({ isWrongChain, isForked }) => !isWrongChain && !isForked)
  const present = ours.filter(({ isReachable }) => isReachable)
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
