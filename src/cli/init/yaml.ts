import { stringify } from 'yaml'
import { type Answers, type CheckedNode, chainKinds, type InitTag } from './answers.ts'

/** The commented configuration file. */
export function initYaml({ chains, database }: Answers): string {
  const sections = (Object.entries(chains) as [InitTag, CheckedNode[]][]).map(([tag, nodes]) =>
    chainYaml(tag, nodes),
  )
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
  const chain_id = nodes.find((node) => node.chain_id !== undefined)?.chain_id
  return `  # ${title}
  ${tag}:
    kind: ${kind}
    networks:
      mainnet:
${
  chain_id === undefined
    ? ''
    : `        # A node of another chain is never used.\n        chain_id: ${scalar(chain_id)}\n`
}        upstreams:
${nodes.map(({ url, problem }) => `          - url: ${scalar(url)}${problem ? `  # did not answer: ${problem.replaceAll(/\s+/g, ' ')}` : ''}`).join('\n')}
`
}

const scalar = (value: string | number): string => stringify(value).trim()
