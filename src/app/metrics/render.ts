/** The two forms of `/metrics`. */
export const contentTypes = {
  prometheus: 'text/plain; version=0.0.4; charset=utf-8',
  openMetrics: 'application/openmetrics-text; version=1.0.0; charset=utf-8',
} as const

/** One sample as prom-client gives it. */
export type Sample = {
  value: number
  labels: Partial<Record<string, string | number>>
  metricName?: string
  exemplar?: { labelSet: Record<string, string>; value: number; timestamp: number } | null
}

/** A metric with its samples. */
export type MetricFamily = {
  name: string
  help: string
  type: unknown
  values: readonly Sample[]
}

/** Whether a client asks for OpenMetrics. Prometheus names it first; others get the classic text. */
export const asksForOpenMetrics = (accept: string | undefined): boolean =>
  (accept ?? '')
    .split(',')
    .some((range) => range.split(';')[0]?.trim().toLowerCase() === 'application/openmetrics-text')

/** The metrics in the form that an `Accept` header asks for. */
export const renderMetrics = (families: readonly MetricFamily[], accept: string | undefined) =>
  asksForOpenMetrics(accept)
    ? { contentType: contentTypes.openMetrics, text: renderOpenMetrics(families) }
    : { contentType: contentTypes.prometheus, text: renderPrometheus(families) }

/** The classic text of Prometheus. */
export const renderPrometheus = (families: readonly MetricFamily[]): string =>
  families
    .map(({ name, help, type, values }) => {
      const lines = values.map((value) => `${value.metricName ?? name}${sample(value)}\n`)
      return `# HELP ${name} ${escapeHelp(help)}\n# TYPE ${name} ${type}\n${lines.join('')}`
    })
    .join('\n')

/**
 * OpenMetrics 1.0, with exemplars. prom-client's own output renames counters for good, so that it cannot serve both
 * forms. Here a counter keeps its name with `_total`; its family is named without.
 */
export const renderOpenMetrics = (families: readonly MetricFamily[]): string =>
  `${families
    .map(({ name, help, type, values }) => {
      const family = type === 'counter' ? name.replace(/_total$/, '') : name
      const own = type === 'counter' ? `${family}_total` : name
      const lines = values.map(
        (value) => `${value.metricName ?? own}${sample(value)}${exemplar(value)}\n`,
      )
      return `# HELP ${family} ${escapeHelp(help)}\n# TYPE ${family} ${type}\n${lines.join('')}`
    })
    .join('')}# EOF\n`

const sample = ({ labels, value }: Sample): string => {
  const parts = Object.entries(labels).map(([name, text]) => `${name}="${escapeLabel(text)}"`)
  return `${parts.length > 0 ? `{${parts.join(',')}}` : ''} ${number(value)}`
}

const exemplar = ({ exemplar: one }: Sample): string => {
  if (!one) return ''
  const labels = Object.entries(one.labelSet).map(
    ([name, text]) => `${name}="${escapeLabel(text)}"`,
  )
  return ` # {${labels.join(',')}} ${number(one.value)} ${one.timestamp}`
}

const number = (value: number): string => {
  if (Number.isNaN(value)) return 'NaN'
  if (Number.isFinite(value)) return String(value)
  return value > 0 ? '+Inf' : '-Inf'
}

const escapeHelp = (text: string): string => text.replace(/\\/g, '\\\\').replace(/\n/g, '\\n')

const escapeLabel = (value: unknown): string => escapeHelp(String(value)).replace(/"/g, '\\"')
