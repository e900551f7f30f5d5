// What is written about the configuration, made from its schema: the printed configuration, the example file, the JSON Schema
// for editors and docs/configuration.md. A key is described once, beside its type, and nowhere else.

import { Document, isCollection, isScalar, stringify, visit } from 'yaml'
import { shortVariables } from './env-source.ts'
import { isRecord } from './layers.ts'
import { liveKeys } from './live-keys.ts'
import {
  expectation,
  isRequired,
  mapLeaves,
  mapOf,
  type Node,
  nodeOfConfig,
  rootNode,
  rootNodeOf,
} from './node.ts'
import { type Origin, type Path, pathKey } from './problem.ts'
import type { Config } from './schema.ts'
import { maskSecret } from './secrets.ts'

/** The configuration as YAML with every default filled in, secrets masked, and the origin of each value beside it. */
export const printConfig = (config: Config): string => {
  const paths: Path[] = []
  // Collected while masking, because both walk the same leaves.
  const shown = mapLeaves(nodeOfConfig(config), config, ({ node, path, value }) => {
    paths.push(path)
    return node.secret && typeof value === 'string' ? maskSecret(value, node.mask) : value
  })
  // Without aliases: two equal lists would otherwise be printed as a reference.
  const document = new Document(shown, { aliasDuplicateObjects: false })
  for (const path of paths) {
    const node = document.getIn(path, true)
    const comment = ` ${originText(config.source.origins[pathKey(path)])}`
    if (isScalar(node) || isCollection(node)) node.comment = comment
  }
  // A list or map without entries reads best on one line, where its comment stands too.
  visit(document, {
    Collection: (_, node) => {
      node.flow = node.items.length === 0
    },
  })
  document.commentBefore = config.source.file
    ? ` Configuration file: ${config.source.file}`
    : ' No configuration file.'
  return document.toString({ lineWidth: 0 })
}

const originText = (origin: Origin | undefined): string => {
  if (origin === undefined || origin.from === 'default') return 'default'
  if (origin.from === 'env') return origin.variable
  if (origin.from === 'override') return 'command line'
  return origin.line === undefined ? 'file' : `file, line ${origin.line}`
}

const exampleIntroduction = `# Every key of the configuration with its default. A line such as "#key: value" is not set.
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
  `${exampleIntroduction}\n${section(rootNode, rootNode.example ?? {}, new Set(), true).join('\n')}`

// A key that was described once stays bare afterwards: in the second network, in the other chains.
type Seen = Set<string>

const section = (node: Node, example: unknown, seen: Seen, top = false): string[] => {
  const given = isRecord(example) ? example : {}
  return Object.entries(node.properties ?? {}).flatMap(([name, child]) => {
    // The description is part of the key: equal names with other meanings are described again.
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
    // An empty map as default says nothing; its example does.
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

type JsonSchema = Record<string, unknown>

/** The configuration file as JSON Schema 2020-12, for editors. */
export const configJsonSchema = (): JsonSchema => {
  const { properties, ...root } = schemaOf(rootNode) as { properties: Record<string, JsonSchema> }
  // A chain of a free name has the keys of the family of its variant; editors offer those of all.
  const families = ['Q', 'T', 'S', 'P'].map((letter) =>
    schemaOf(rootNodeOf(new Map([['chain', [letter]]])).properties!.chains!.properties!.chain!),
  )
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Portolan configuration',
    ...root,
    properties: {
      ...properties,
      chains: {
        ...properties.chains,
        patternProperties: { '^[a-z0-9]+(?:-[a-z0-9]+)*$': { anyOf: families } },
      },
    },
  }
}

const ownNotes = new Set(['unset', 'example', 'expects', 'entry', 'secret', 'mask', 'path'])
const nestedKeys = new Set(['properties', 'patternProperties', 'items', 'anyOf', 'required'])

const schemaOf = (node: Node): JsonSchema => {
  // Notes of ours are not JSON Schema; editors would warn about unknown keywords.
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

const pageIntroduction = `# Configuration

Portolan needs no configuration: without a file and without a database address everything is embedded.
For anything else it reads one YAML file: the one named by \`--config\`, else by \`PORTOLAN_CONFIG\`, else
\`portolan.yaml\` in the working directory. Command line goes before environment, environment before file,
file before default. \`portolan.example.yaml\` has every key; \`portolan config check\` lists every problem at
once, \`portolan config print\` shows each value and where it came from, and \`portolan config schema\` writes a
JSON Schema for editors. An empty key counts as not set; an unknown key is refused. What all chains have in
common is described once, below \`chains.c\`.

\`chains\` takes any number of chains under free names, each with any number of networks: \`docs/networks.md\`.

## Environment variables

\`PORTOLAN_\` and the key in upper case, with two underscores for each level: \`PORTOLAN_SERVER__PORT\` sets
\`server.port\`, \`PORTOLAN_CHAINS__C__NETWORKS__MAINNET__UPSTREAMS__0__URL\` the address of the first node.
In the name of a chain, a network or a header an underscore stands for a dash. A whole section or list may be given as
YAML or JSON. An empty variable counts as not set; an unknown \`PORTOLAN_\` variable is refused.
`

const secrets = `## Secrets

A key marked *secret* holds the secret itself, or says where it is:

- \`file:/run/secrets/name\`: the content of that file, without a line break at the end;
- \`env:NAME\`: the value of that environment variable.

Secrets are never printed or logged. Of the addresses of databases the password is hidden, of the addresses of
nodes everything after the host, because providers put keys there.
`

const reloading = `## Changes without a restart

\`portolan config reload\`, or SIGHUP to the process, reads the file again. \`chains\` applies at once, and so do ${liveKeys
  .map((key) => `\`${key}\``)
  .join(
    ', ',
  )}. A change of any other key is named in the answer and the log and applies at the next start. See
[Chains and networks](networks.md#changes-while-the-service-runs).
`

/** The configuration's page of the documentation, in Markdown. */
export const configMarkdown = (): string => {
  const short = Object.entries(shortVariables).map(
    ([name, path]) => `| \`${name}\` | \`${path.join('.')}\` |`,
  )
  const seen = new Set<string>()
  // Single keys first, sections after them, as a reader looks for them.
  const general = Object.entries(rootNode.properties ?? {}).filter(([, node]) => !node.properties)
  const sections = Object.entries(rootNode.properties ?? {}).filter(([, node]) => node.properties)
  return [
    pageIntroduction,
    table(['Short form', 'Key'], short),
    secrets,
    reloading,
    '## General\n',
    keyTable(general.flatMap(([name, node]) => rows(name, node, seen))),
    ...sections.flatMap(([name, node]) => [
      `## \`${name}\`\n\n${node.description}\n`,
      keyTable(children(name, node, seen)),
    ]),
  ].join('\n')
}

const keyTable = (lines: string[]): string => table(['Key', 'Default', 'Meaning'], lines)

const table = (head: string[], lines: string[]): string =>
  [`| ${head.join(' | ')} |`, `|${' --- |'.repeat(head.length)}`, ...lines, ''].join('\n')

// What was said under the same name once, such as the keys of a node, is not said again for the other chains.
const rows = (key: string, node: Node, seen: Set<string>): string[] => {
  const said = `${key.split('.').at(-1)}: ${node.description}`
  const own = seen.has(said) ? [] : [row(key, node)]
  seen.add(said)
  return [...own, ...children(key, node, seen)]
}

const children = (key: string, node: Node, seen: Set<string>): string[] => {
  const map = mapOf(node)
  if (node.items) return children(`${key}[]`, node.items, seen)
  if (map?.entry.properties) return children(`${key}.<${node.entry}>`, map.entry, seen)
  return Object.entries(node.properties ?? {}).flatMap(([name, child]) =>
    rows(`${key}.${name}`, child, seen),
  )
}

const row = (key: string, node: Node): string => {
  const meaning = [
    node.description,
    node.properties ? '' : `Must be ${expectation(node)}.`,
    node.secret || mapOf(node)?.entry.secret ? '*Secret.*' : '',
  ]
  return `| \`${key}\` | ${defaultText(node)} | ${meaning.filter(Boolean).join(' ').replaceAll('|', '\\|')} |`
}

const defaultText = (node: Node): string => {
  if (node.default !== undefined)
    return `\`${typeof node.default === 'object' ? JSON.stringify(node.default) : node.default}\``
  return node.unset ?? ''
}
