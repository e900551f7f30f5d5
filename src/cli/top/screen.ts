import { styleText } from 'node:util'
import type { NodeStatus } from '../../chains/nodes/status.ts'
import type { Busiest, CallCounts } from '../../storage/access/busiest.ts'
import type { Status } from '../chains/run.ts'
import { formatTable, wrapText } from '../table.ts'

/** A node with its calls since the start of the service. */
export type BusyNode = CallCounts & { name: string; state: string; p95_ms: number | null }

/** What the screen shows. `problem` says why there are no nodes. */
export type Snapshot = Busiest & { nodes: BusyNode[]; problem?: string }

/** The width is read for each drawing: a window may be resized. */
type Terminal = { stream: NodeJS.WritableStream; columns: () => number; rows: number }

/** The nodes of every chain, of any family. */
export const nodesOf = (chains: Status['chains']): BusyNode[] =>
  Object.entries(chains).flatMap(([chain, { nodes = {} }]) =>
    Object.entries(nodes).flatMap(([network, { upstreams }]) =>
      upstreams.map((node) => busyNode(`${chain}/${network}`, node)),
    ),
  )

const busyNode = (place: string, { name, state, requests, errors, latency_ms }: NodeStatus) => ({
  ...{ name: `${place} ${name}`, state, calls: requests, errors, refused: 0 },
  p95_ms: latency_ms && Math.round(latency_ms.p95),
})

// Services store their counts every 5 seconds, so that the rate needs more than one interval.
const windowMs = 20_000
const mostRemembered = 10_000

/** Remembers counts of the last seconds and makes rates of them. */
function createRates(): (key: string, calls: number, now: number) => number | undefined {
  const before = new Map<string, { calls: number; now: number }[]>()
  return (key, calls, now) => {
    if (before.size > mostRemembered) before.clear()
    const samples = (before.get(key) ?? []).filter((one) => now - one.now <= windowMs)
    const first = samples[0]
    samples.push({ calls, now })
    before.set(key, samples)
    if (!first || now <= first.now) return undefined
    // A new day, or a service that was restarted, counts from 0 again.
    if (calls < first.calls) before.set(key, [{ calls, now }])
    return Math.max(0, ((calls - first.calls) * 1_000) / (now - first.now))
  }
}

type Row = CallCounts & { cells: readonly string[]; key: string }

/** Makes the text of a snapshot; rates are those since the snapshots before. */
export function createTopScreen({
  stream,
  columns,
  rows: count,
}: Terminal): (snapshot: Snapshot, now: number) => string {
  const rateOf = createRates()
  const bold = (text: string) =>
    styleText('bold', text, { stream: stream as NodeJS.WritableStream & { isTTY?: boolean } })

  const list = (heading: readonly string[], rows: readonly Row[], now: number): string => {
    const rated = rows.map((row) => ({ ...row, rate: rateOf(row.key, row.calls, now) }))
    const shown = rated
      .toSorted((a, b) => (b.rate ?? 0) - (a.rate ?? 0) || b.calls - a.calls)
      .slice(0, count)
    const cells = shown.map(({ rate, calls, errors, refused, cells }) => [
      rate === undefined ? '-' : rate.toFixed(1),
      ...[calls, errors, refused].map((value) => value.toLocaleString('en')),
      ...cells,
    ])
    const lines = formatTable(['PER S', 'CALLS', 'ERRORS', 'LIMITED', ...heading], cells)
      .split('\n')
      .map((line) => line.slice(0, columns()))
    return [bold(lines[0]!), ...(shown.length > 0 ? lines.slice(1) : ['none'])].join('\n')
  }

  return ({ organizations, keys, methods, nodes, problem }, now) =>
    [
      list(
        ['ORGANIZATION'],
        organizations.map((one) => ({ ...one, key: `o ${one.domain}`, cells: [one.domain] })),
        now,
      ),
      list(
        ['KEY', 'ORGANIZATION'],
        keys.map((one) => ({
          ...one,
          key: `k ${one.credential_id}`,
          // Keys may have no name; the id is what `keys list` shows.
          cells: [one.name || one.credential_id, one.domain],
        })),
        now,
      ),
      list(
        ['METHOD', 'CHAIN'],
        methods.map((one) => {
          const place = one.network ? `${one.chain}/${one.network}` : one.chain
          return { ...one, key: `m ${place} ${one.method}`, cells: [one.method, place] }
        }),
        now,
      ),
      problem === undefined
        ? list(
            ['P95', 'STATE', 'NODE'],
            nodes.map((one) => ({
              ...one,
              key: `n ${one.name}`,
              cells: [one.p95_ms === null ? '-' : `${one.p95_ms} ms`, one.state, one.name],
            })),
            now,
          )
        : wrapText(`Nodes are not shown: ${problem}`, columns()).join('\n'),
    ].join('\n\n')
}
