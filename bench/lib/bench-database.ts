import { readdirSync, readFileSync } from 'node:fs'
import { chmod, mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { silentLog } from '../../src/lib/log.ts'
import { startEmbeddedPostgres } from '../../src/storage/embedded/embedded-postgres.ts'
import type { EmbeddedConnection } from '../../src/storage/embedded/layout.ts'
import type { Settings } from '../../src/storage/embedded/settings.ts'
import { migrateDatabase } from '../../src/storage/migrations/migrate.ts'
import { type Database, openDatabase } from '../../src/storage/pg/database.ts'

/** A database with settings as in production, and what it costs. */
export type BenchDatabase = Database & {
  version: string
  connection: EmbeddedConnection
  /** CPU seconds of the whole server so far. */
  cpu(): number
}

const ticksPerSecond = 100

/** Starts a server with these binaries on a directory of its own, durable as the service's own. */
export async function startBenchDatabase(
  binaries: string,
  settings: Settings = {},
): Promise<BenchDatabase> {
  const dataDir = await realpath(await mkdtemp(join(tmpdir(), 'portolan-bench-')))
  await chmod(dataDir, 0o711)
  const server = await startEmbeddedPostgres({ dataDir, binaries, settings, log: silentLog })
  const database = openDatabase({
    connection: server.connection,
    log: silentLog,
    statementTimeoutMs: 600_000,
  })
  await migrateDatabase(database.db, { log: silentLog })
  return {
    ...database,
    version: server.version,
    connection: server.connection,
    cpu: () => treeCpu(server.pid()),
    stop: async () => {
      await database.stop()
      await server.stop()
      await rm(dataDir, { recursive: true, force: true })
    },
  }
}

/** Of a process, its children that live, and those that it has seen end. */
function treeCpu(pid: number): number {
  let ticks = 0
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue
    try {
      const fields = readFileSync(`/proc/${name}/stat`, 'utf8').split(') ')[1]!.split(' ')
      const used = Number(fields[11]) + Number(fields[12])
      if (Number(name) === pid) ticks += used + Number(fields[13]) + Number(fields[14])
      else if (Number(fields[1]) === pid) ticks += used
    } catch {
      // It ended meanwhile, and is among those that its parent counts.
    }
  }
  return ticks / ticksPerSecond
}
