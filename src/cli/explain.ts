import type { FieldError } from '../contract/errors/errors.ts'
import { isDatabaseUnavailable, isDiskFull } from '../storage/pg/errors.ts'

// By name rather than by class: the classes would load the database, the configuration and the
// contract just to say that a file is missing.
const speaksForItself = new Set([
  'AbortError',
  'AdminListenError',
  'ArchiveError',
  'BackfillError',
  'ChainUnavailableError',
  'CliError',
  'ConfigError',
  'EmbeddedPostgresError',
  'ForeignChainError',
  'InstallationError',
  'MasterKeyError',
  'MigrationLockError',
  'NewerDatabaseError',
  'OldServerError',
  'PreviewDatabaseError',
  'RewindError',
  'SealError',
])

type Details = Error & {
  code?: unknown
  severity?: unknown
  syscall?: unknown
  address?: unknown
  port?: unknown
  path?: unknown
  errors?: unknown
}

/** What a failure means to the person at the terminal; undefined for a fault of ours. */
export function explain(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined
  const details: Details = error
  if (speaksForItself.has(error.name)) return error.message
  if (error.name === 'OperationError')
    return withFields(error.message, details.errors as readonly FieldError[])
  if (details.syscall === 'listen') return listenSentence(details)
  // PostgreSQL's own errors carry a severity, those of the network do not.
  if (typeof details.severity === 'string' && !isDatabaseUnavailable(error))
    return `The database refuses: ${sentence(error.message)}`
  if (isDiskFull(error))
    return 'The disk of the database is full: nothing was changed. Make room, and run the command again.'
  // After the disk: PostgreSQL reports a full disk as a lost connection, too.
  if (isDatabaseUnavailable(error)) return databaseSentence(details)
  return fileSentence(details)
}

/** A sentence, and below it every bad field. */
export const withFields = (text: string, fields: readonly FieldError[] = []): string =>
  [text, ...fields.map(({ field, detail }) => `  ${field || 'request'}: ${detail}`)].join('\n')

function listenSentence({ code, address, port, message }: Details): string {
  const where = port === undefined ? String(address) : `${address}:${port}`
  const other = 'Choose another port with --port or PORTOLAN_PORT.'
  if (code === 'EADDRINUSE') return `Another program is listening on ${where} already. ${other}`
  if (code === 'EACCES') return `This user may not listen on ${where}. ${other}`
  return `The service cannot listen on ${where} (${code ?? message}). Check server.host.`
}

function databaseSentence(error: Details): string {
  // A host with several addresses gives one error for each.
  const first = [error, ...((error.errors as Details[] | undefined) ?? [])].find(
    ({ address, message }) => address !== undefined || message !== '',
  )
  const where = first?.address === undefined ? '' : ` at ${first.address}${port(first)}`
  const why = String(first?.code ?? error.code ?? first?.message)
  return `The database${where} is unreachable (${why}). Check database.url or DATABASE_URL, and that the server is running.`
}

const port = (error: Details): string => (error.port === undefined ? '' : `:${error.port}`)

const fileReasons: Record<string, string> = {
  EACCES: 'this user may not',
  EPERM: 'this user may not',
  EROFS: 'the file system is read-only',
  ENOSPC: 'the disk is full',
  EDQUOT: 'the quota is used up',
  ENOENT: 'it does not exist',
  ENOTDIR: 'a part of the path is not a folder',
  EISDIR: 'it is a folder',
  EEXIST: 'it already exists',
}

function fileSentence({ code, syscall, path }: Details): string | undefined {
  const reason = fileReasons[String(code)]
  if (reason === undefined) return undefined
  return path === undefined
    ? `The system refuses to ${syscall ?? 'continue'}: ${reason}.`
    : `${path} cannot be used (${syscall}): ${reason}.`
}

const sentence = (text: string): string => (/[.!?]$/.test(text) ? text : `${text}.`)
