import { styleText } from 'node:util'

/** Which lines are wanted. */
export type LogFilter = {
  level?: string
  chain?: string
  request?: string
  organization?: string
  grep?: string
}

/** A line of the log: its fields, or its text where it is not JSON. */
export type LogLine = { text: string } | { fields: Record<string, unknown> }

const severities: Readonly<Record<string, number>> = {
  ...{ trace: 10, debug: 20, info: 30, warn: 40, error: 50, fatal: 60 },
}
const names = new Map(Object.entries(severities).map(([name, value]) => [value, name]))

/** Reads a line; undefined where the filter leaves it out. */
export function readLine(text: string, filter: LogFilter): LogLine | undefined {
  if (text.trim() === '' || (filter.grep !== undefined && !text.includes(filter.grep)))
    return undefined
  const fields = parse(text)
  const { chain, request, organization } = filter
  if (!fields) return chain || request || organization ? undefined : { text }
  const wanted: [string, string | undefined][] = [
    ['chain', chain],
    ['request_id', request],
    ['organization_id', organization],
  ]
  if (wanted.some(([name, value]) => value !== undefined && fields[name] !== value))
    return undefined
  return severityOf(fields) < (severities[filter.level ?? 'debug'] ?? 0) ? undefined : { fields }
}

function parse(text: string): Record<string, unknown> | undefined {
  if (!text.startsWith('{')) return undefined
  try {
    return JSON.parse(text) as Record<string, unknown>
  } catch {
    return undefined
  }
}

const severityOf = ({ level }: Record<string, unknown>): number =>
  typeof level === 'number' ? level : (severities[String(level)] ?? 30)

const colours = { debug: 'dim', info: 'green', warn: 'yellow', error: 'red', fatal: 'red' } as const
const hidden = new Set(['level', 'time', 'msg', 'message', 'pid', 'hostname', 'err'])

/** A line for people: time, level, message, and the other fields. */
export function lineText(line: LogLine, stream: NodeJS.WritableStream): string {
  if ('text' in line) return line.text
  const { fields } = line
  const level = names.get(severityOf(fields)) ?? 'info'
  const paint = colours[level as keyof typeof colours] ?? 'green'
  const time = new Date(fields.time as string | number)
  const shown = Number.isNaN(time.getTime()) ? '' : time.toISOString().slice(11, 23)
  const rest = Object.entries(fields)
    .filter(([name]) => !hidden.has(name))
    .map(([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
  const error = (fields.err as { message?: unknown } | undefined)?.message
  const message = String(fields.msg ?? fields.message ?? '')
  return [
    shown,
    styleText(paint, level.toUpperCase().padEnd(5), { stream }),
    message,
    ...(error === undefined ? [] : [`(${String(error)})`]),
    ...rest,
  ].join(' ')
}
