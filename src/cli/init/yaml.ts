// The file that `portolan init` writes. Text and not a YAML document, because most of its value are the comments. Values
// of the person go through `stringify`, so that no address can break out of its place.

import { stringify } from 'yaml'
import {
  type Answers,
  type CheckedNode,
  chainKinds,
  type InitTag,
  type NamedChain,
  type NamedNetwork,
} from './answers.ts'

/** The commented configuration file. */
export function initYaml({ chains, named = {}, database }: Answers): string {
  const sections = [
    ...(Object.entries(chains) as [InitTag, CheckedNode[]][]).map(([tag, nodes]) =>
      chainYaml(tag, nodes),
    ),
    ...Object.entries(named).map(([name, chain]) => namedYaml(name, chain)),
  ]
  return `# Configuration of Portolan. "portolan config example" shows every key with its default,
# "portolan config check" finds mistakes in this file, "portolan doctor" asks the nodes again.
#
# An address or a secret may also be file:/path or env:NAME, so that it need not stand here.

server:
  # Listen on 0.0.0.0 behind a proxy that brings TLS.
  host: 127.0.0.1
  port: 4000

database:
${
  database === undefined
    ? '  # Not set: Portolan runs a PostgreSQL of its own below .data.\n  #url: env:DATABASE_URL'
    : `  url: ${scalar(database)}`
}

# Several nodes of a network help each other out: list as many as you have.
chains:
${sections.join('\n')}`
}

function chainYaml(tag: InitTag, nodes: readonly CheckedNode[]): string {
  const { kind, title } = chainKinds[tag]
  return `  # ${title}
  ${tag}:
    kind: ${kind}
    networks:
      mainnet:
${nodesYaml(nodes)}`
}

function namedYaml(name: string, { variant, networks }: NamedChain): string {
  const names = Object.keys(networks)
  // The key is written only where it differs from the default.
  const first = names.includes('mainnet') ? undefined : names[0]
  return `  ${name}:
    # C: wallets and gateway. [C, Q] in \`variants\` adds the chain queries.
    variant: ${variant}
${first === undefined ? '' : `    default_network: ${first}\n`}    networks:
${Object.entries(networks)
  .map(([network, settings]) => networkYaml(network, settings))
  .join('')}`
}

const networkYaml = (network: string, { nodes, notes, settings }: NamedNetwork): string =>
  `${notes.map((line) => `      # ${line}\n`).join('')}      ${network}:
${Object.entries(settings)
  // Settings of well-known chains are words and lists of numbers, which YAML reads without quotes.
  .map(([key, value]) => `        ${key}: ${JSON.stringify(value).replaceAll('"', '')}\n`)
  .join('')}${nodesYaml(nodes)}`

function nodesYaml(nodes: readonly CheckedNode[]): string {
  const chain_id = nodes.find((node) => node.chain_id !== undefined)?.chain_id
  return `${
    chain_id === undefined
      ? ''
      : `        # A node of another chain is never used.\n        chain_id: ${scalar(chain_id)}\n`
  }        upstreams:
${nodes.map(({ url, problem }) => `          - url: ${scalar(url)}${problem ? `  # did not answer: ${problem.replaceAll(/\s+/g, ' ')}` : ''}`).join('\n')}
`
}

const scalar = (value: string | number): string => stringify(value).trim()
