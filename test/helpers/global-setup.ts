import { rmSync } from 'node:fs'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'
import type { EmbeddedConnection } from '../../src/storage/embedded/layout.ts'
import { makeBundlesFolder } from './bundle.ts'
import { citusSettings, isOnCitus } from './citus.ts'
import { type Engine, embeddedBinaries, startTestServer, systemBinaries } from './postgres.ts'
import { makeFolderInMemory } from './temporary-folder.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** Where the test servers are or will be; an engine is absent when the machine lacks it. */
    postgres: Partial<Record<Engine, EmbeddedConnection>>
    /** Where the further machines of Citus are, if the tests run on it. */
    otherMachines: EmbeddedConnection[]
    /** A folder for the data directory that the first test which needs one initializes. */
    initializedDataDir: string
  }
}

/** Set when a project of the run has made the folder in memory. */
const memoryVariable = 'TESTS_IN_MEMORY'

/** Starts the servers in the background, so that tests without a database do not wait for them. */
export const setup = async (project: TestProject): Promise<() => Promise<void>> => {
  useFolderInMemory()
  const [embedded, system] = await Promise.all([embeddedBinaries(), systemBinaries()])
  if (isOnCitus && system === undefined) throw new Error('this machine has no PostgreSQL')
  const startMain = () =>
    isOnCitus ? startTestServer(system!, citusSettings) : startTestServer(embedded)
  const embeddedServer = await startMain()
  const otherServers = isOnCitus ? [await startMain(), await startMain()] : []
  const systemServer = system ? await startTestServer(system) : undefined
  project.provide('postgres', {
    embedded: embeddedServer.connection,
    ...(systemServer && { system: systemServer.connection }),
  })
  project.provide(
    'otherMachines',
    otherServers.map(({ connection }) => connection),
  )
  const initializedDataDir = await mkdtemp(join(tmpdir(), 'portolan-initialized-'))
  // As root the database runs as another user, who must reach the directory.
  await chmod(initializedDataDir, 0o711)
  project.provide('initializedDataDir', initializedDataDir)
  // While sources are edited, programs run them as they are.
  const bundles = project.config.watch ? undefined : makeBundlesFolder()
  return async () => {
    await Promise.all(
      [embeddedServer, systemServer, ...otherServers].map((server) => server?.stop()),
    )
    await rm(initializedDataDir, { recursive: true, force: true })
    if (bundles !== undefined) await rm(bundles, { recursive: true, force: true })
  }
}

/** For `tmpdir()` in this process and in the workers, which inherit it. The projects of a run share it. */
function useFolderInMemory(): void {
  if (process.env[memoryVariable] !== undefined) return
  const folder = makeFolderInMemory()
  if (folder === undefined) return
  process.env[memoryVariable] = folder
  process.env.TMPDIR = folder
  // Also when a run is interrupted: memory, unlike a disk, is missed.
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
}
