import type { NetworkStatus } from '../../app/networks.ts'
import { readConnectionFile } from '../call/target.ts'
import { CliError } from '../cli-error.ts'
import { type GlobalOptions, print, printJson, type Shell } from '../shell.ts'
import { formatTable } from '../table.ts'

type Options = GlobalOptions & { url?: string; json?: boolean }

type ChainStatus = {
  kind: string
  networks: string[]
  nodes?: Record<string, NetworkStatus>
}

/** Shows what `/status` of the running service says of its chains. */
export async function showChains(shell: Shell, options: Options): Promise<void> {
  const base_url = options.url ?? (await readConnectionFile(shell, options)).base_url
  const chains = await readChains(base_url)
  if (options.json) return printJson(shell, chains)
  const rows = Object.entries(chains).flatMap(([tag, chain]) => chainRows(tag, chain))
  if (rows.length === 0) return print(shell, 'No chain is configured.')
  const heading = ['CHAIN', 'NODE', 'STATE', 'HEAD', 'LAG', 'P50', 'P95', 'ERRORS', 'ABILITIES']
  print(shell, formatTable(heading, rows))
}

async function readChains(base_url: string): Promise<Record<string, ChainStatus>> {
  const url = new URL('/status', base_url)
  const answer = await fetch(url, { signal: AbortSignal.timeout(10_000) }).catch(
    (cause: unknown) => {
      throw new CliError(`The service at ${base_url} does not answer. Is it running?`, { cause })
    },
  )
  const { chains } = (await answer.json()) as { chains: Record<string, ChainStatus> }
  return chains
}

function chainRows(tag: string, { kind, networks, nodes }: ChainStatus): string[][] {
  if (!nodes) return networks.map((network) => [`${tag}/${network}`, '', `${kind}: not served yet`])
  return Object.entries(nodes).flatMap(([network, { upstreams }]) =>
    upstreams.map((node) => [
      `${tag}/${network}`,
      node.name,
      node.reason ? `${node.state}: ${node.reason}` : node.state,
      String(node.head ?? '-'),
      String(node.lag ?? '-'),
      node.latency_ms ? `${Math.round(node.latency_ms.p50)} ms` : '-',
      node.latency_ms ? `${Math.round(node.latency_ms.p95)} ms` : '-',
      `${(node.error_rate * 100).toFixed(1)} %`,
      node.capabilities.join(' '),
    ]),
  )
}
