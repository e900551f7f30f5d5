// The log. Fields with the names of secrets are hidden as a last resort, three levels deep; no code of ours logs one.

import { pino } from 'pino'
import type { Log } from '../lib/log.ts'

/** How the log is written. */
export type LoggerOptions = {
  level: string
  format: 'auto' | 'json' | 'pretty'
  /** The destination; standard output by default. */
  destination?: NodeJS.WritableStream & { isTTY?: boolean }
}

// Nothing of ours logs these; the list is for errors and objects of libraries that might.
const secrets: ReadonlySet<string> = new Set([
  'api_key',
  'api_secret',
  'x-api-key',
  'x-api-signature',
  'authorization',
  'password',
  'connectionString',
])
/** Levels of an object that are searched for them. */
const searchedLevels = 3

/**
 * The same value with its secrets hidden; a copy only where there are some. The option `redact` of pino parses its
 * paths again for every field of a line, and access log lines are written for every operation.
 */
function redacted(value: unknown, levels: number): unknown {
  if (typeof value !== 'object' || value === null || levels === 0) return value
  let copy: object | undefined
  for (const name of Object.keys(value)) {
    // Its message and stack would be lost in a copy; the serializer hides what it has.
    if (levels === searchedLevels && (name === 'err' || name === 'error')) continue
    const own = (value as Record<string, unknown>)[name]
    const shown = secrets.has(name) ? '[redacted]' : redacted(own, levels - 1)
    if (shown === own) continue
    copy ??= Array.isArray(value) ? [...value] : { ...value }
    Object.assign(copy, { [name]: shown })
  }
  return copy ?? value
}

const serializeError = (error: Error): unknown =>
  redacted(pino.stdSerializers.err(error), searchedLevels - 1)

/** A log whose least severe level can be changed while it is used. */
export type LeveledLog = Log & { level: string; attach(hooks: LogHooks): void }

/** What telemetry adds to a log that is in use. */
export type LogHooks = {
  /** Fields of every line that is written from now on. */
  context(): object
  /** Called with every line as it is written. */
  onLine?: ((line: string) => void) | undefined
}

/** Makes the logger: one line of JSON per event, or lines for people on a terminal. */
export async function createLogger(options: LoggerOptions): Promise<LeveledLog> {
  const destination = options.destination ?? process.stdout
  const pretty =
    options.format === 'pretty' ||
    (options.format === 'auto' && destination.isTTY === true && !process.env.CI)
  let hooks: LogHooks | undefined
  const settings = {
    level: options.level,
    mixin: () => hooks?.context() ?? {},
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: {
      level: (label: string) => ({ level: label }),
      log: (fields: object) => redacted(fields, searchedLevels) as Record<string, unknown>,
    },
    serializers: { err: serializeError, error: serializeError },
  }
  const stream: { write(line: string): unknown } = pretty
    ? (await import('pino-pretty')).default({
        ...{ destination, ignore: 'pid,hostname', translateTime: 'HH:MM:ss' },
      })
    : destination
  const write = (line: string) => {
    stream.write(line)
    hooks?.onLine?.(line)
  }
  const attach = (given: LogHooks) => {
    hooks = given
  }
  return Object.assign(pino(settings, { write }), { attach })
}
