const networkCodes = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ECONNABORTED',
  'EPIPE',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ETIMEDOUT',
  'EADDRNOTAVAIL',
])

const unavailableStates = new Set([
  '25006', // read-only: a standby, or a primary that was just demoted
  '25P03', // idle in a transaction for too long
  '40001', // another transaction changed the same rows
  '40P01', // a deadlock, of which this transaction was the victim
  '57014', // statement timeout
  '57P01', // terminated by the administrator
  '57P02', // another process crashed
  '57P03', // starting up or shutting down
  '57P05', // idle session timeout
  '58030', // I/O error
])

// The driver gives these no code.
const driverMessages = [
  'timeout exceeded when trying to connect',
  'Connection terminated',
  'Client has encountered a connection error and is not queryable',
  'Client was closed and is not queryable',
  'Query read timeout',
  'Cannot use a pool after calling end on the pool',
]

const isServerState = (code: unknown): code is string =>
  typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code)

const causesOf = (error: Error): unknown[] => [
  error.cause,
  ...(error instanceof AggregateError ? error.errors : []),
]

/** Whether the database cannot be worked with now, and a later attempt may succeed. */
export const isDatabaseUnavailable = (error: unknown): boolean => {
  if (!(error instanceof Error)) return false
  const { code } = error as { code?: unknown }
  if (typeof code === 'string' && networkCodes.has(code)) return true
  // A unix socket that is not there, and not just any missing file.
  if (code === 'ENOENT') return (error as { syscall?: unknown }).syscall === 'connect'
  // 08: connection exceptions; 53: out of connections, memory or disk.
  if (isServerState(code)) return /^(08|53)/.test(code) || unavailableStates.has(code)
  if (driverMessages.some((message) => error.message.startsWith(message))) return true
  return causesOf(error).some(isDatabaseUnavailable)
}

// 22: data exceptions; 23: constraints; 54: too large for the server; P0: raised by a trigger; XX: too large for its memory
// (`invalid memory alloc request size`), and rows that are damaged on disk.
const ofRow = /^(22|23|54|P0|XX)/

/**
 * Whether a statement failed because of the rows that it wrote, and fails again with them only. An error that no server gave is of
 * the rows as well, because the program does the same with them each time. Not 53200: a server without memory refuses all rows.
 */
export const isAboutRows = (error: unknown): boolean => {
  if (isDatabaseUnavailable(error)) return false
  const { code } = error as { code?: unknown }
  return !isServerState(code) || ofRow.test(code)
}

/** Whether the disk of the server is full. The server continues by itself once there is space. */
export const isDiskFull = (error: unknown): boolean =>
  error instanceof Error &&
  ((error as { code?: unknown }).code === '53100' || causesOf(error).some(isDiskFull))

/** Whether a statement broke a unique constraint: any, or the named one. */
export const isUniqueViolation = (error: unknown, constraint?: string): boolean => {
  if (!(error instanceof Error)) return false
  const server = error as { code?: unknown; constraint?: unknown }
  return server.code === '23505' && (constraint === undefined || server.constraint === constraint)
}
