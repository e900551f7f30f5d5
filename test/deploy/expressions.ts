import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'

/** The root of the repository. */
export const root = join(import.meta.dirname, '../..')

/** The text of a file of the repository. */
export const read = (path: string): string => readFileSync(join(root, path), 'utf8')

/** An alert of the rules. */
export type Alert = { alert: string; expr: string; annotations: Record<string, string> }

/** The alerts of `deploy/prometheus/alerts.yaml`. */
export const alerts: readonly Alert[] = parse(read('deploy/prometheus/alerts.yaml')).groups.flatMap(
  ({ rules }: { rules: Alert[] }) => rules,
)

/** What of a Grafana dashboard is looked at. */
export type Dashboard = {
  uid: string
  title: string
  templating: { list: { type: string; query: string | { query: string } }[] }
  panels: {
    id: number
    title: string
    gridPos: { x: number; y: number; w: number; h: number }
    targets: { expr: string; legendFormat: string }[]
  }[]
}

/** The dashboards by the names of their files. */
export const dashboards: ReadonlyMap<string, Dashboard> = new Map(
  readdirSync(join(root, 'deploy/grafana'))
    .filter((name) => name.endsWith('.json'))
    .map((name) => [name, JSON.parse(read(`deploy/grafana/${name}`))]),
)

/** A metric in an expression, with what its selector says of labels. */
export type Selector = { metric: string; matchers: { label: string; values: string[] }[] }

/** The parts of an expression that depend on what is exported. */
export type Expression = {
  selectors: Selector[]
  /** Labels of `by`, `without`, `on` and so on. */
  grouped: string[]
  /** Metrics inside of `rate` and `increase`. */
  rising: string[]
}

const groupings = /\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)/g
const operators = new Set(['and', 'or', 'unless', 'bool'])

/** Reads an expression as far as the test needs it. `promtool` checks the syntax. */
export const readExpression = (text: string): Expression => {
  const grouped = [...text.matchAll(groupings)].flatMap(([, list]) => list!.split(/,\s*/))
  const rest = text.replace(groupings, ' ').replace(/\[\w+\]/g, '')
  const selectors = [
    ...rest.matchAll(/(?<![\w:.])([a-zA-Z_:][\w:]*)(?![\w:])(?:\{([^}]*)\})?(?!\s*\()/g),
  ]
    .filter(([, metric]) => !operators.has(metric!))
    .map(([, metric, matchers = '']) => ({ metric: metric!, matchers: matchersIn(matchers) }))
  const rising = [...rest.matchAll(/\b(?:rate|increase)\((\w+)/g)].map(([, metric]) => metric!)
  return { selectors, grouped, rising }
}

const matchersIn = (text: string): Selector['matchers'] =>
  [...text.matchAll(/(\w+)\s*(?:=~|!~|!=|=)\s*"([^"]*)"/g)].map(([, label, value]) => ({
    label: label!,
    values: value!.split('|'),
  }))

/** Every expression of alerts and dashboards, with where it is. */
export const expressions: readonly { place: string; text: string }[] = [
  ...alerts.map(({ alert, expr }) => ({ place: alert, text: expr })),
  ...[...dashboards].flatMap(([name, { panels }]) =>
    panels.flatMap(({ title, targets }) =>
      targets.map(({ expr }) => ({ place: `${name}: ${title}`, text: expr })),
    ),
  ),
]
