import type { BlockRef } from '../chain.ts'
import type { NodeRecord } from '../nodes/node.ts'
import type { NodeSet } from '../nodes/node-set.ts'

const verdictMs = 5_000

/**
 * Whether a final chain has another block instead of ours. Final blocks never leave the chain, so
 * a node with another block is excluded while another node agrees with us. If none agrees, and
 * unreachable nodes do not return in time, the chain itself has started anew.
 */
export async function hasLeft<node extends NodeRecord>(
  {
    set,
    hashAt,
    patienceMs,
  }: {
    set: Pick<NodeSet<node>, 'identity' | 'askAll' | 'exclude'>
    /** The hash that a node has at a number. */
    hashAt(node: node, number: number, signal: AbortSignal): Promise<Buffer>
    patienceMs: number
  },
  { position, waitedMs }: { position: BlockRef; waitedMs: number },
  signal: AbortSignal,
): Promise<boolean> {
  // Where no node answers, the follow loop reports it.
  await set.identity(signal).catch(() => signal.throwIfAborted())
  const verdicts = await set.askAll({
    signal,
    timeoutMs: verdictMs,
    ask: async (node, limited) =>
      (await hashAt(node, position.number, limited)).equals(position.hash),
  })
  const others = verdicts.filter(({ answer }) => answer === false)
  if (verdicts.some(({ answer }) => answer === true)) {
    for (const { node } of others) set.exclude(node)
    return false
  }
  return others.length > 0 && (others.length === verdicts.length || waitedMs > patienceMs)
}
