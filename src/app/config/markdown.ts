import { mapOf, type Node, rootNode } from './node.ts'
import { expectation } from './sentences.ts'
import { shortVariables } from './variables.ts'

const introduction = `# Configuration

Portolan needs no configuration: without a file and without a database address everything is embedded.
For anything else it reads one YAML file: the one named by \`--config\`, else by \`PORTOLAN_CONFIG\`, else
\`portolan.yaml\` in the working directory. Command line goes before environment, environment before file,
file before default. \`portolan.example.yaml\` has every key; \`portolan config check\` lists every problem at
once, \`portolan config print\` shows each value and where it came from, and \`portolan config schema\` writes a
JSON Schema for editors. An empty key counts as not set; an unknown key is refused. What all chains have in
common is described once, below \`chains.c\`.

## Environment variables

\`PORTOLAN_\` and the key in upper case, with two underscores for each level: \`PORTOLAN_SERVER__PORT\` sets
\`server.port\`, \`PORTOLAN_CHAINS__C__NETWORKS__MAINNET__UPSTREAMS__0__URL\` the address of the first node.
In the name of a network or a header an underscore stands for a dash. A whole section or list may be given as
YAML or JSON. An empty variable counts as not set; an unknown \`PORTOLAN_\` variable is refused.
`

const secrets = `## Secrets

A key marked *secret* holds the secret itself, or says where it is:

- \`file:/run/secrets/name\`: the content of that file, without a line break at the end;
- \`env:NAME\`: the value of that environment variable.

Secrets are never printed or logged. Of the addresses of databases the password is hidden, of the addresses of
nodes everything after the host, because providers put keys there.
`

/** The configuration's page of the documentation, in Markdown. */
export const configMarkdown = (): string => {
  const short = Object.entries(shortVariables).map(
    ([name, path]) => `| \`${name}\` | \`${path.join('.')}\` |`,
  )
  const seen = new Set<string>()
  const general = Object.entries(rootNode.properties ?? {}).filter(([, node]) => !node.properties)
  const sections = Object.entries(rootNode.properties ?? {}).filter(([, node]) => node.properties)
  return [
    introduction,
    table(['Short form', 'Key'], short),
    secrets,
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
