import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import type { NodeRecord } from './node.ts'

/** How long a node that comes first in the order may take to say which chain it is of. */
export const turnMs = 2_000

/**
 * Decides which chain is followed: the one in the configuration, or that of the first node in the
 * configured order that answers in time. Nodes of other chains are marked.
 */
export function createPinning({
  nodes,
  clock,
  log,
  isExpected,
}: {
  nodes: readonly NodeRecord[]
  clock: Clock
  log: Log
  /** Whether the configuration names this chain. */
  isExpected: (identity: string) => boolean
}) {
  const inOrder = nodes.toSorted((a, b) => a.priority - b.priority)
  let pinned: string | undefined
  let begunAt: number | undefined

  const choose = (): string | undefined => {
    const isTurnOver = clock.now() - (begunAt ?? clock.now()) >= turnMs
    for (const { identity, wasProbed } of inOrder) {
      if (identity !== undefined && isExpected(identity)) return identity
      if (!wasProbed && !isTurnOver) return undefined
    }
    return undefined
  }
  return {
    pinned: () => pinned,
    /** A probe begins: from now on nodes are waited for. */
    begin: (): void => {
      begunAt ??= clock.now()
    },
    /** Looks at what the nodes have said. */
    judge: (): void => {
      pinned ??= choose()
      for (const node of nodes) {
        if (node.identity === undefined) continue
        const isWrong = pinned === undefined ? !isExpected(node.identity) : node.identity !== pinned
        if (isWrong && !node.isWrongChain)
          log.error(
            { node: node.name, chain: node.identity },
            'node is on another chain and is not used',
          )
        node.isWrongChain = isWrong
      }
    },
  }
}
