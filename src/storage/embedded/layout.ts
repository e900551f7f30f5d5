import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** How a client reaches the embedded server; fits `pg.Pool` and `pg.Client` as it is. */
export type EmbeddedConnection = { host: string; port: number; user: string; database: string }

/** Where everything of one embedded server lives. */
export type Layout = {
  /** `<dataDir>/postgres`: belongs to the user the server runs as. */
  root: string
  data: string
  /** initdb works in directories that begin so, and `data` is either absent or complete. */
  staging: string
  socket: string
  config: string
  log: string
  /** Copies of binaries that the server's user could not reach where they were installed. */
  binaries: string
}

// Only part of the name of the socket: the server opens no port.
const port = 5432
const name = 'portolan'

// sockaddr_un holds 108 bytes on Linux and 104 on macOS and the BSDs, with the closing NUL.
const socketPathLimit = 104

const socketFits = (directory: string): boolean =>
  Buffer.byteLength(join(directory, `.s.PGSQL.${port}`)) < socketPathLimit

const socketDirectory = (root: string): string => {
  const inside = join(root, 'run')
  if (socketFits(inside)) return inside
  // Not TMPDIR: a later start with another environment must find the same socket.
  const temporary = existsSync('/tmp') ? '/tmp' : tmpdir()
  const digest = createHash('sha256').update(root).digest('hex').slice(0, 16)
  return join(temporary, `${name}-${digest}`)
}

/** The paths of the embedded server of a data directory, which must be given as a real path. */
export const layoutOf = (dataDir: string): Layout => {
  const root = join(dataDir, 'postgres')
  return {
    root,
    data: join(root, 'data'),
    staging: join(root, 'data.new-'),
    socket: socketDirectory(root),
    config: join(root, 'portolan.conf'),
    log: join(root, 'postgres.log'),
    binaries: join(dataDir, 'binaries'),
  }
}

/** How to connect to the server of a data directory, running or not. */
export const connectionOf = (layout: Layout): EmbeddedConnection => ({
  host: layout.socket,
  port,
  user: name,
  database: name,
})
