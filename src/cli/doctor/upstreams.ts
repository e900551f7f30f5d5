// Asks every configured node what it is: one request each, without the pool, so that a node is judged by itself and
// not replaced by a better one.

import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { resolveChains } from '../../app/config/resolve.ts'
import type { Config } from '../../app/config/schema.ts'
import type { ConnectionFile } from '../../app/connection-file.ts'
import { askNode, type NodeAnswer } from '../nodes/ask-node.ts'
import type { NodeAddress, NodeKind } from '../nodes/rpc.ts'
import type { Shell } from '../shell.ts'
import type { DoctorContext } from './finding.ts'
import { type Finding, ok, warning } from './finding.ts'

type Network = {
  chain_id?: number | string
  upstreams: readonly {
    url: string
    name?: string
    headers: Record<string, string>
    transport?: 'grpc' | 'grpc-web'
    key?: string
  }[]
}
type Upstream = NodeAddress & { network: string; name: string; chain_id?: number | string }
type Asked = Upstream & { answer?: NodeAnswer; finding: Finding }

/** Identifies each node of each chain, in parallel. The service starts without them. */
export async function* checkUpstreams({
  config,
  shell,
  dataDir,
}: DoctorContext): AsyncGenerator<Finding> {
  const configured = upstreamsOf(config, shell.env)
  const asked = await Promise.all(
    (configured.length > 0 ? configured : await localNodes(dataDir)).map(ask),
  )
  yield* asked.map(({ finding }) => finding)
  yield* differences(asked)
}

function upstreamsOf(config: Config, env: Shell['env']): Upstream[] {
  const { chains } = resolveChains(config, env)
  return Object.entries(chains).flatMap(([tag, { kind, networks }]) =>
    Object.entries<Network>(networks).flatMap(([network, { chain_id, upstreams }]) =>
      upstreams.map(({ name, transport, key, url, headers }) => ({
        ...{ kind, url, headers, network: `${tag} ${network}` },
        // Only the host: the rest of the address may hold an access key.
        name: name ?? new URL(url).host,
        ...(transport && { transport }),
        ...(key !== undefined && { key }),
        ...(chain_id !== undefined && { chain_id }),
      })),
    ),
  )
}

/** Those of the embedded mode, while it runs. */
async function localNodes(dataDir: string): Promise<Upstream[]> {
  const text = await readFile(join(dataDir, 'connection.json'), 'utf8').catch(() => '{}')
  const { chains = {} } = JSON.parse(text) as Partial<ConnectionFile>
  return Object.entries(chains).flatMap(([tag, { kind, network, node_url }]) =>
    node_url === undefined
      ? []
      : [{ kind: kind as NodeKind, network: `${tag} ${network}`, name: 'local', url: node_url }],
  )
}

async function ask(upstream: Upstream): Promise<Asked> {
  const { network, name, kind, chain_id } = upstream
  const begun = performance.now()
  try {
    const answer = await askNode(upstream)
    const took = Math.round(performance.now() - begun)
    if (chain_id !== undefined && answer.chain_id !== undefined && answer.chain_id !== chain_id)
      return {
        ...upstream,
        finding: warning(
          'nodes',
          `${network} ${name} is on chain ${answer.chain_id}, but chain_id is ${chain_id}: it is not used.`,
          'Fix its url, or chain_id of the network.',
        ),
      }
    const facts = [chainOf(answer), `${heads[kind]} ${answer.head}`, `${took} ms`]
    const detail = `${network} ${name}: ${facts.filter(Boolean).join(', ')}`
    return { ...upstream, answer, finding: ok('nodes', detail) }
  } catch (error) {
    const { message } = error as Error
    return {
      ...upstream,
      finding: isRefusal.test(message)
        ? warning(
            'nodes',
            `${network} ${name} refuses the credentials: ${message}.`,
            'Check the access key in the url or the headers.',
          )
        : warning('nodes', `${network} ${name} does not answer: ${message}.`, fixes[kind]),
    }
  }
}

// Only the texts of transports are known here: HTTP status codes and names of gRPC statuses.
const isRefusal = /\b40[13]\b|UNAUTHENTICATED|PERMISSION_DENIED/i

const heads: Readonly<Record<NodeKind, string>> = {
  evm: 'block',
  ton: 'masterchain block',
  sui: 'checkpoint',
  polkadot: 'final block',
}

const fixes: Readonly<Record<NodeKind, string>> = {
  evm: 'Check the url, the node and the network in between.',
  ton: 'Check that it is a toncenter HTTP API v2 with its path, such as http://127.0.0.1:8081/api/v2, or the address and key of a lite server.',
  sui: 'Check that it is the gRPC address of a full node; where only HTTP/1.1 comes through, set transport: grpc-web.',
  polkadot:
    'Check that it is the WebSocket address of a node of Asset Hub, such as ws://127.0.0.1:9944.',
}

const chainOf = ({ chain_id, chain_name }: NodeAnswer): string => {
  if (chain_id === undefined) return ''
  const id = `${chain_id}`
  const short = id.length > 20 ? `${id.slice(0, 10)}…` : id
  return chain_name === undefined ? `chain ${short}` : `${chain_name} (${short})`
}

/** Nodes of one network that are on different chains: the service would use those of the first. */
function differences(asked: readonly Asked[]): Finding[] {
  const chains = new Map<string, Set<number | string>>()
  for (const { network, chain_id, answer } of asked) {
    // With chain_id set, a node of another chain was reported already.
    if (chain_id !== undefined || answer?.chain_id === undefined) continue
    chains.set(network, (chains.get(network) ?? new Set()).add(answer.chain_id))
  }
  return [...chains]
    .filter(([, ids]) => ids.size > 1)
    .map(([network, ids]) =>
      warning(
        'nodes',
        `The nodes of ${network} are on different chains: ${[...ids].join(', ')}.`,
        'Set chain_id of the network to the one you mean.',
      ),
    )
}
