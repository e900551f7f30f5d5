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
const secrets = [
  'api_key',
  'api_secret',
  'x-api-key',
  'x-api-signature',
  'authorization',
  'password',
  'connectionString',
]

/** A log whose least severe level can be changed while it is used. */
export type LeveledLog = Log & { level: string }

/** Makes the logger: one line of JSON per event, or lines for people on a terminal. */
export async function createLogger(options: LoggerOptions): Promise<LeveledLog> {
  const destination = options.destination ?? process.stdout
  const pretty =
    options.format === 'pretty' ||
    (options.format === 'auto' && destination.isTTY === true && !process.env.CI)
  const settings = {
    level: options.level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    redact: {
      paths: secrets.flatMap((name) => [`["${name}"]`, `*["${name}"]`, `*.*["${name}"]`]),
      censor: '[redacted]',
    },
    serializers: { err: pino.stdSerializers.err, error: pino.stdSerializers.err },
  }
  const plain: LeveledLog = pino(settings, destination)
  if (!pretty) return plain
  const { default: prettyStream } = await import('pino-pretty')
  const stream = prettyStream({ destination, ignore: 'pid,hostname', translateTime: 'HH:MM:ss' })
  const forPeople: LeveledLog = pino(settings, stream)
  return forPeople
}
