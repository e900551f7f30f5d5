import { askNode } from '../nodes/ask-node.ts'
import { type CheckedNode, chainKinds, type InitTag } from './answers.ts'

/** Asks a node which chain it is on. A node that is unreachable is written down anyway. */
export async function checkNode(tag: InitTag, url: string): Promise<CheckedNode> {
  try {
    const { chain_id } = await askNode({ kind: chainKinds[tag].kind, url })
    return { url, ...(chain_id !== undefined && { chain_id }) }
  } catch (error) {
    return { url, problem: (error as Error).message }
  }
}
