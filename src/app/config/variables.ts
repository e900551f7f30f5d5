import type { Path } from './finding.ts'

/** Start of every variable of ours; two underscores go one level down. */
export const prefix = 'PORTOLAN_'

/** Variables with a name of their own, and the key that each one sets. */
export const shortVariables: Readonly<Record<string, readonly string[]>> = {
  PORTOLAN_DATA_DIR: ['data_dir'],
  PORTOLAN_PORT: ['server', 'port'],
  DATABASE_URL: ['database', 'url'],
  REDIS_URL: ['redis', 'url'],
}

/** Variables of ours that are not keys: the file, what the command line signs with, local nodes. */
export const reservedVariables: ReadonlySet<string> = new Set([
  'PORTOLAN_CONFIG',
  'PORTOLAN_API_KEY',
  'PORTOLAN_API_SECRET',
  'PORTOLAN_BASE_URL',
  'PORTOLAN_ANVIL',
  'PORTOLAN_CAST',
])

/** The variable that sets a key. */
export const variableOf = (path: Path): string => `${prefix}${path.join('__').toUpperCase()}`

/**
 * Whether Kubernetes set the variable. It tells every container about a Service named `portolan`
 * in the old style of Docker links, with `PORTOLAN_PORT=tcp://…` among them.
 */
export const isForeignVariable = (variable: string, text: string): boolean =>
  /^PORTOLAN_(?:[A-Z0-9_]+_)?SERVICE_(?:HOST|PORT(?:_[A-Z0-9_]+)?)$/.test(variable) ||
  /^PORTOLAN_(?:[A-Z0-9_]+_)?PORT_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?$/.test(variable) ||
  (/^PORTOLAN_(?:[A-Z0-9_]+_)?PORT$/.test(variable) && /^(?:tcp|udp|sctp):\/\//.test(text))
