// The schema as plain data, for walks: defaults, printing, documents and masking of secrets all follow the same tree.

import { isRecord } from './layers.ts'
import { type Path, shownWord } from './problem.ts'
import { configSchemaOf } from './schema.ts'
import { readVariants, type VariantsByName } from './sections/chains.ts'

/** The part of JSON Schema that the sections use, and our own notes, as plain data. */
export type Node = {
  type?: string
  const?: unknown
  enum?: readonly unknown[]
  anyOf?: readonly Node[]
  properties?: Record<string, Node>
  patternProperties?: Record<string, Node>
  required?: readonly string[]
  items?: Node
  minimum?: number
  maximum?: number
  minLength?: number
  maxLength?: number
  minItems?: number
  minProperties?: number
  pattern?: string
  description?: string
  default?: unknown
  /** What happens without a value, for keys that have no default. */
  unset?: string
  /** A value for the example file. */
  example?: unknown
  /** What the value must be, in words, where a pattern would say it badly. */
  expects?: string
  /** What one entry of a map is called. */
  entry?: string
  /** Never printed; may be a `file:` or `env:` reference. */
  secret?: boolean
  /** What of a secret address is hidden; without it, everything. */
  mask?: 'password' | 'path'
  /** A path of the file system, made absolute when it is loaded. */
  path?: boolean
}

/** The schema of the whole configuration as plain data; with the chains that a configuration names. */
export const rootNodeOf = (named?: VariantsByName): Node => configSchemaOf(named) as unknown as Node

/** The same without any chain of a free name, for documents. */
export const rootNode = rootNodeOf()

/** The same for a loaded configuration. */
export const nodeOfConfig = ({ chains }: { chains: unknown }): Node =>
  rootNodeOf(readVariants(chains))

/** Pattern of the keys and schema of the entries of a map; undefined for anything else. */
export const mapOf = (node: Node): { pattern: string; entry: Node } | undefined => {
  const first = Object.entries(node.patternProperties ?? {})[0]
  return first && { pattern: first[0], entry: first[1] }
}

/** Whether the schema holds other schemas: a section, a map or a list. */
export const isContainer = (node: Node): boolean =>
  node.properties !== undefined || node.patternProperties !== undefined || node.items !== undefined

/** Whether a key must be written, because it has neither a default nor a meaning without one. */
export const isRequired = (parent: Node, name: string): boolean => {
  const child = parent.properties?.[name]
  return (
    child !== undefined &&
    (parent.required ?? []).includes(name) &&
    child.default === undefined &&
    child.properties === undefined
  )
}

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
  // Also an empty map or list, which has nothing to walk into.
  return change({ path, node, value })
}

/** Every leaf of a valid value. */
export const leavesOf = (node: Node, value: unknown): Leaf[] => {
  const leaves: Leaf[] = []
  mapLeaves(node, value, (leaf) => leaves.push(leaf))
  return leaves
}

/** What a value must be, as the end of "must be …". */
export const expectation = (node: Node): string => {
  if (node.expects !== undefined) return node.expects
  if (node.const !== undefined) return shownWord(String(node.const))
  if (node.enum) return `one of ${node.enum.map((value) => shownWord(String(value))).join(', ')}`
  if (node.anyOf) return node.anyOf.map(expectation).join(', ')
  if (node.properties) return 'a section with keys'
  if (mapOf(node)) return atLeast('a section', node.minProperties, node.entry ?? 'key')
  if (node.items) return atLeast('a list', node.minItems, 'item')
  if (node.type === 'boolean') return '`true` or `false`'
  if (node.type === 'integer') return `a whole number${range(node)}`
  if (node.type === 'number') return `a number${range(node)}`
  return node.minLength === undefined ? 'a text' : 'a text that is not empty'
}

const atLeast = (what: string, count: number | undefined, part: string): string =>
  count === undefined ? `${what} of ${part}s` : `${what} of at least ${count} ${part}`

const range = ({ minimum, maximum }: Node): string => {
  // The largest safe integer says nothing to a person.
  const most = maximum === Number.MAX_SAFE_INTEGER ? undefined : maximum
  if (minimum !== undefined && most !== undefined) return ` from ${minimum} to ${most}`
  if (minimum !== undefined) return ` of at least ${minimum}`
  return most === undefined ? '' : ` of at most ${most}`
}
