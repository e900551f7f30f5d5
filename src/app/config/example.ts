import { stringify } from 'yaml'
import { isRecord } from './layers.ts'
import { isRequired, mapOf, type Node, rootNode } from './node.ts'

const introduction = `# Every key of the configuration with its default. A line such as "#key: value" is not set.
# What is described for one chain holds for the others.
# Copy this file to portolan.yaml, keep what you change, delete the rest.
#
# Environment variables go before the file: PORTOLAN_SERVER__PORT=4000 sets server.port, and
# PORTOLAN_PORT, PORTOLAN_DATA_DIR, DATABASE_URL and REDIS_URL are short forms.
#
# A secret, and an address that holds one, may be written here, or be file:/path or env:NAME.
#
# For help in an editor run "portolan config schema > portolan.schema.json" and put this line first:
# yaml-language-server: $schema=portolan.schema.json
`

/** The example file: every key with its description and its default. */
export const exampleYaml = (): string =>
  `${introduction}\n${section(rootNode, rootNode.example ?? {}, new Set(), true).join('\n')}`

// A key that was described once stays bare afterwards: in the second network, in the other chains.
type Seen = Set<string>

const section = (node: Node, example: unknown, seen: Seen, top = false): string[] => {
  const given = isRecord(example) ? example : {}
  return Object.entries(node.properties ?? {}).flatMap(([name, child]) => {
    const description = `${name}: ${child.description}`
    const fresh = !seen.has(description)
    seen.add(description)
    const value = name in given ? given[name] : child.properties ? child.example : undefined
    if (!fresh && value === undefined) return []
    const lines = entry(name, child, value, isRequired(node, name), seen)
    const described = fresh ? [...describe(child), ...lines] : lines
    return top ? [...described, ''] : described
  })
}

const entry = (
  name: string,
  node: Node,
  value: unknown,
  required: boolean,
  seen: Seen,
): string[] => {
  if (node.properties) return [`${name}:`, ...indent(section(node, value ?? {}, seen))]
  if (value === undefined && !required) {
    const empty = isRecord(node.default) && Object.keys(node.default).length === 0
    if (node.default !== undefined && !empty) return yaml({ [name]: node.default })
    return yaml({ [name]: node.example }).map((line) => `#${line}`)
  }
  const map = mapOf(node)
  if (map && isRecord(value))
    return [
      `${name}:`,
      ...Object.entries(value).flatMap(([key, part]) =>
        indent(entry(key, map.entry, part, true, seen)),
      ),
    ]
  if (node.items?.properties && Array.isArray(value))
    return [
      `${name}:`,
      ...value.flatMap((item) => indent(listItem(section(node.items!, item, seen)))),
    ]
  return yaml({ [name]: value ?? node.example })
}

// The dash goes before the first key, which descriptions may precede.
const listItem = (lines: string[]): string[] => {
  const first = lines.findIndex((line) => !line.startsWith('#'))
  return lines.map((line, index) => {
    if (index < first) return line
    return index === first ? `- ${line}` : `  ${line}`
  })
}

const describe = (node: Node): string[] => {
  const notes = [
    node.description ?? '',
    node.enum ? `One of ${node.enum.join(', ')}.` : '',
    node.unset === undefined ? '' : `Not set: ${node.unset}.`,
  ]
  return wrap(notes.filter(Boolean).join(' ').replaceAll('`', ''), 88).map((line) => `# ${line}`)
}

const wrap = (text: string, width: number): string[] => {
  const lines: string[] = []
  for (const word of text.split(' ')) {
    const last = lines.at(-1)
    if (last === undefined || last.length + word.length >= width) lines.push(word)
    else lines[lines.length - 1] = `${last} ${word}`
  }
  return lines
}

const indent = (lines: string[]): string[] => lines.map((line) => (line === '' ? '' : `  ${line}`))

const yaml = (value: unknown): string[] => stringify(value, { lineWidth: 0 }).trimEnd().split('\n')
