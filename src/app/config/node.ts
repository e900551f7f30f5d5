import { configSchema } from './schema.ts'

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

/** The schema of the whole configuration as plain data. */
export const rootNode = configSchema as unknown as Node

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
