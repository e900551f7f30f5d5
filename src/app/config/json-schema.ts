import { isRequired, type Node, rootNode } from './node.ts'

type JsonSchema = Record<string, unknown>

/** The configuration file as JSON Schema 2020-12, for editors. */
export const configJsonSchema = (): JsonSchema => ({
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  title: 'Portolan configuration',
  ...schemaOf(rootNode),
})

const ownNotes = new Set(['unset', 'example', 'expects', 'entry', 'secret', 'mask', 'path'])
const nestedKeys = new Set(['properties', 'patternProperties', 'items', 'anyOf', 'required'])

const schemaOf = (node: Node): JsonSchema => {
  const plain = Object.entries(node).filter(([key]) => !ownNotes.has(key) && !nestedKeys.has(key))
  return {
    ...Object.fromEntries(plain),
    // A section whose lines are all commented out is null to YAML, and fine to us.
    ...(node.properties && { type: ['object', 'null'] }),
    ...(node.unset === undefined
      ? {}
      : { description: `${node.description} Not set: ${node.unset}.` }),
    ...(node.example === undefined || typeof node.example === 'object'
      ? {}
      : { examples: [node.example] }),
    ...sectionOf(node),
    ...(node.patternProperties && {
      patternProperties: each(node.patternProperties),
      additionalProperties: false,
    }),
    ...(node.items && { items: schemaOf(node.items) }),
    ...(node.anyOf && { anyOf: node.anyOf.map((part) => schemaOf(part)) }),
  }
}

const sectionOf = (node: Node): JsonSchema => {
  if (!node.properties) return {}
  // TypeBox calls a key with a default required, since it is always there once loaded; a file may leave it out.
  const required = Object.keys(node.properties).filter((name) => isRequired(node, name))
  return {
    properties: each(node.properties),
    additionalProperties: false,
    ...(required.length > 0 && { required }),
  }
}

const each = (nodes: Record<string, Node>): Record<string, JsonSchema> =>
  Object.fromEntries(Object.entries(nodes).map(([name, node]) => [name, schemaOf(node)]))
