// The screen of `portolan status`. Plain text, redrawn as a whole: there is no state of the terminal to repair when the
// command is interrupted.

import { styleText } from 'node:util'
import { durationText, leftText } from '../progress.ts'
import { formatTable, wrapText } from '../table.ts'

// Only what is shown here is declared: a service of another version may report more or less.
type Tracking = {
  network: string
  state: string
  health: string
  problem: string
  block_number: number | null
  head: number | null
  gaps?: readonly unknown[]
  transactions?: { open?: number; stuck?: number }
}

type ShownNodes = { upstreams?: readonly { state: string }[] }

/** What the screen shows of `/status`. */
export type ShownStatus = {
  version: string
  uptime_seconds: number
  database: { mode: string; reachable: boolean; schema_version: string }
  webhooks?: Record<string, unknown>
  events?: {
    open: readonly {
      chain: string
      network: string
      kind: string
      detail: string
      create_time: string
    }[]
  }
  chains: Record<
    string,
    {
      default_network: string
      networks: readonly string[]
      nodes?: Record<string, ShownNodes>
      tracking?: Tracking
      tracking_of_networks?: Record<string, Tracking>
    }
  >
}

/** The width is read for each drawing: a window may be resized. */
type Terminal = { stream: NodeJS.WritableStream; columns: () => number }

/** Makes the text of a status; the speed of catching up is that since the status before. */
export function createScreen({
  stream,
  columns: width,
}: Terminal): (status: ShownStatus, now: number) => string {
  // By network, so bounded by the configuration.
  const before = new Map<string, { block: number; now: number }>()
  const colour = (name: 'green' | 'yellow' | 'red' | 'bold', text: string) =>
    styleText(name, text, { stream: stream as NodeJS.WritableStream & { isTTY?: boolean } })

  const progressOf = (name: string, { block_number, head }: Tracking, now: number): string => {
    if (block_number === null || head === null) return ''
    const behind = Math.max(0, head - block_number)
    const last = before.get(name)
    before.set(name, { block: block_number, now })
    // One behind is usual: a block arrives while the one before is stored.
    if (behind <= 1) return 'at the head'
    const seconds = last ? (now - last.now) / 1_000 : 0
    const speed = last && seconds > 0 ? (block_number - last.block) / seconds : 0
    const text = `${behind.toLocaleString('en')} behind`
    return speed > 0 ? `${text}, ${speed.toFixed(1)}/s, ${leftText(behind, speed)}` : text
  }

  return (status, now) => {
    const { database, chains, events } = status
    const columns = width()
    const rows = trackedOf(chains).map(([name, tracking, nodes]) => {
      const up = nodes.filter(({ state }) => state === 'healthy' || state === 'degraded').length
      return [
        name,
        tracking.health === 'ok' ? tracking.state : tracking.health,
        tracking.block_number?.toLocaleString('en') ?? '-',
        progressOf(name, tracking, now),
        nodes.length > 0 ? `${up}/${nodes.length}` : '-',
        String(tracking.gaps?.length ?? 0),
      ]
    })
    const heading = ['CHAIN', 'STATE', 'BLOCK', 'PROGRESS', 'NODES', 'GAPS']
    const table = formatTable(heading, rows).split('\n')
    const shown = table.map((line, at) => {
      // Before it is coloured: escape codes would count as columns.
      const cut = line.slice(0, columns)
      const state = rows[at - 1]?.[1]
      if (at === 0) return colour('bold', cut)
      return state === 'failing' || state === 'stalled' ? colour('red', cut) : cut
    })
    const open = events?.open ?? []
    const problems = open.flatMap(({ chain, network, kind, create_time, detail }) =>
      wrapText(`${create_time}  ${chain}/${network}  ${kind}: ${detail}`, columns).map((line) =>
        colour('yellow', line),
      ),
    )
    const reachable = database.reachable
      ? colour('green', 'reachable')
      : colour('red', 'unreachable')
    return [
      `Portolan ${status.version}, up ${durationText(status.uptime_seconds)}, database ${database.mode} ${reachable}`,
      webhookLine(status.webhooks),
      '',
      ...(rows.length > 0 ? shown : ['No network is tracked.']),
      '',
      ...(problems.length > 0 ? ['Problems:', ...problems] : ['No problems.']),
    ]
      .filter((line) => line !== undefined)
      .join('\n')
  }
}

const trackedOf = (
  chains: ShownStatus['chains'],
): (readonly [string, Tracking, readonly { state: string }[]])[] =>
  Object.entries(chains).flatMap(([chain, one]) =>
    [...(one.tracking ? [one.tracking] : []), ...Object.values(one.tracking_of_networks ?? {})].map(
      (tracking) =>
        [
          `${chain}/${tracking.network}`,
          tracking,
          one.nodes?.[tracking.network]?.upstreams ?? [],
        ] as const,
    ),
  )

// The first four counts, whatever they are called, so that the line fits a terminal of 80 columns.
function webhookLine(webhooks: Record<string, unknown> | undefined): string | undefined {
  const numbers = Object.entries(webhooks ?? {}).filter(([, value]) => typeof value === 'number')
  if (numbers.length === 0) return undefined
  const texts = numbers.slice(0, 4).map(([name, value]) => `${name.replaceAll('_', ' ')} ${value}`)
  return `Webhooks: ${texts.join(', ')}`
}
