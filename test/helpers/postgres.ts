import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { silentLog } from '../../src/lib/log.ts'
import { type Binaries, findBinaries } from '../../src/storage/embedded/binaries.ts'
import { startEmbeddedPostgres } from '../../src/storage/embedded/embedded-postgres.ts'
import {
  connectionOf,
  type EmbeddedConnection,
  layoutOf,
} from '../../src/storage/embedded/layout.ts'
import { npmBinaries } from '../../src/storage/embedded/npm-binaries.ts'
import type { Settings } from '../../src/storage/embedded/settings.ts'
import { installPackage } from './debian.ts'

/** The PostgreSQL that comes with the service, and the one of the machine. */
export type Engine = 'embedded' | 'system'

/** A server for tests, perhaps still starting. */
export type TestServer = { connection: EmbeddedConnection; stop(): Promise<void> }

/** The binaries of the npm package. */
export const embeddedBinaries = async (): Promise<string> => {
  const directory = await npmBinaries({ copyTo: join(tmpdir(), 'portolan-binaries') })
  if (directory) return directory
  throw new Error('@embedded-postgres is not installed for this platform')
}

const lookForSystemBinaries = (): Promise<Binaries | undefined> =>
  findBinaries({ npm: async () => undefined }).catch(() => undefined)

/** The machine's binaries, installed first where that is possible; undefined when there are none. */
export const systemBinaries = async (): Promise<string | undefined> => {
  const found = await lookForSystemBinaries()
  if (found) return found.directory
  await installPackage('postgresql')
  return (await lookForSystemBinaries())?.directory
}

/** Starts a server in a directory of its own, fast instead of durable; does not wait until it is up. */
export const startTestServer = async (
  binaries: string,
  further: Settings = {},
): Promise<TestServer> => {
  const dataDir = await mkdtemp(join(tmpdir(), 'portolan-test-'))
  const starting = startEmbeddedPostgres({
    dataDir,
    binaries,
    log: { ...silentLog, error: (fields, message) => console.error(message, fields) },
    settings: {
      fsync: false,
      synchronous_commit: false,
      full_page_writes: false,
      max_connections: 200,
      ...further,
    },
  })
  starting.catch((error) => console.error('the test server did not start:', error))
  return {
    connection: connectionOf(layoutOf(dataDir)),
    stop: async () => {
      await (await starting.catch(() => undefined))?.stop()
      await rm(dataDir, { recursive: true, force: true })
    },
  }
}
