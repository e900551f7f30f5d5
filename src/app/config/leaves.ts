import type { Path } from './finding.ts'
import { isRecord } from './layers.ts'
import { mapOf, type Node } from './node.ts'

/** The value of one key, with its schema. Empty maps and lists count as values. */
export type Leaf = { path: Path; node: Node; value: unknown }

/** A copy of a valid value in which every leaf is what `change` makes of it. */
export const mapLeaves = (
  node: Node,
  value: unknown,
  change: (leaf: Leaf) => unknown,
  path: Path = [],
): unknown => {
  if (Array.isArray(value) && node.items && value.length > 0)
    return value.map((item, index) => mapLeaves(node.items!, item, change, [...path, index]))
  if (isRecord(value) && Object.keys(value).length > 0) {
    const entryNode = (name: string) => node.properties?.[name] ?? mapOf(node)?.entry
    return Object.fromEntries(
      Object.entries(value).flatMap(([name, part]) => {
        const child = entryNode(name)
        return child ? [[name, mapLeaves(child, part, change, [...path, name])]] : []
      }),
    )
  }
  return change({ path, node, value })
}

/** Every leaf of a valid value. */
export const leavesOf = (node: Node, value: unknown): Leaf[] => {
  const leaves: Leaf[] = []
  mapLeaves(node, value, (leaf) => leaves.push(leaf))
  return leaves
}
