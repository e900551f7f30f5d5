import type { NodesStatus } from '../../app/networks.ts'
import type { ShownEvent } from '../../app/status.ts'
import type { TrackerHealth } from '../../workers/tracker/watch.ts'
import { findAdminUrl } from '../admin-url.ts'
import { CliError } from '../cli-error.ts'
import { type GlobalOptions, print, printJson, type Shell } from '../shell.ts'
import { columnsOf, formatTable } from '../table.ts'

type Options = GlobalOptions & { url?: string; json?: boolean }

type ChainStatus = {
  kind: string
  networks: string[]
  /** By network; missing where it has not been used yet. */
  nodes?: Record<string, NodesStatus>
  /** Where wallets are tracked: on the default network, and on others. */
  tracking?: Tracking
  tracking_of_networks?: Record<string, Tracking>
}

/** The state of the tracking of one network. */
export type Tracking = TrackerHealth & {
  network: string
  state: string
  block_number: number | null
  head: number | null
}

/** What `/status` says that is shown here. */
export type Status = {
  chains: Record<string, ChainStatus>
  events?: { open: ShownEvent[]; resolved: ShownEvent[] }
}

/** Shows what `/status` of the running service says of its chains. */
export async function showChains(shell: Shell, options: Options): Promise<void> {
  const admin_url = options.url ?? (await findAdminUrl(shell, options))
  const { chains, events } = await readStatus(admin_url)
  if (options.json) return printJson(shell, chains)
  const rows = Object.entries(chains).flatMap(([tag, chain]) => chainRows(tag, chain))
  if (rows.length === 0) return print(shell, 'No chain is configured.')
  const heading = [
    'CHAIN',
    'ID',
    'NODE',
    'STATE',
    'HEAD',
    'LAG',
    'P50',
    'P95',
    'ERRORS',
    'BREAKER',
    'CAPABILITIES',
  ]
  print(shell, formatTable(heading, rows, columnsOf(shell.stdout)))
  const tracked = trackingRows(chains)
  if (tracked.length > 0)
    print(
      shell,
      `\n${formatTable(['CHAIN', 'TRACKING', 'BLOCK', 'HEAD', 'PROBLEM'], tracked, columnsOf(shell.stdout))}`,
    )
  const shown = [...(events?.open ?? []), ...(events?.resolved.slice(0, shownEvents) ?? [])]
  if (shown.length > 0)
    print(
      shell,
      `\n${formatTable(['CHAIN', 'EVENT', 'SINCE', 'UNTIL', 'DETAIL'], shown.map(eventRow), columnsOf(shell.stdout))}`,
    )
}

const shownEvents = 5

// One row per network, whichever process tracks it.
const trackingRows = (chains: Record<string, ChainStatus>): string[][] =>
  trackedNetworks(chains).map(([name, tracking]) => [
    `${name}/${tracking.network}`,
    // Another process may be the one that tracks.
    tracking.health === 'ok' ? tracking.state : tracking.health,
    String(tracking.block_number ?? '-'),
    String(tracking.head ?? '-'),
    tracking.problem && `since ${tracking.since}: ${tracking.problem}`,
  ])

/** The networks on which wallets are tracked, with the names of their chains. */
export const trackedNetworks = (chains: Record<string, ChainStatus>) =>
  Object.entries(chains).flatMap(([name, { tracking, tracking_of_networks = {} }]) =>
    [...(tracking ? [tracking] : []), ...Object.values(tracking_of_networks)].map(
      (one) => [name, one] as const,
    ),
  )

const eventRow = (event: ShownEvent): string[] => [
  `${event.chain}/${event.network}`,
  event.kind,
  event.create_time,
  event.resolve_time ?? 'now',
  event.detail,
]

/** Asks the running service for its status, at the address of the operator's routes. */
export async function readStatus(admin_url: string): Promise<Status> {
  const url = new URL('/status', admin_url)
  const answer = await fetch(url, { signal: AbortSignal.timeout(10_000) }).catch(
    (cause: unknown) => {
      throw new CliError(`The service at ${admin_url} does not answer. Is it running?`, { cause })
    },
  )
  return (await answer.json()) as Status
}

const chainRows = (tag: string, { kind, networks, nodes = {} }: ChainStatus): string[][] =>
  networks.flatMap((network) => {
    const name = `${tag}/${network}`
    const found = nodes[network]
    return found ? nodeRows(name, found) : [[name, '', '', `idle: ${kind}, not used yet`]]
  })

const nodeRows = (chain: string, { chain_id, upstreams }: NodesStatus): string[][] =>
  upstreams.map((node) => [
    chain,
    shorten(`${chain_id ?? node.chain_id ?? '-'}`),
    node.name,
    node.reason ? `${node.state}: ${node.reason}` : node.state,
    String(node.head ?? '-'),
    String(node.lag ?? '-'),
    node.latency_ms ? `${Math.round(node.latency_ms.p50)} ms` : '-',
    node.latency_ms ? `${Math.round(node.latency_ms.p95)} ms` : '-',
    `${(node.error_rate * 100).toFixed(1)} %`,
    node.breaker,
    node.capabilities.join(' '),
  ])

// Ids of families other than EVM are hashes of 64 digits.
const shorten = (id: string): string => (id.length > 12 ? `${id.slice(0, 11)}…` : id)
