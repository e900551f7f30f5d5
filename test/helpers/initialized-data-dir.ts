import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { inject } from 'vitest'

const run = promisify(execFile)
const main = join(import.meta.dirname, '../../src/main.ts')

/** Makes the directory that is copied: a database with all migrations, and no organization. */
const initialize = async (dataDir: string): Promise<void> => {
  await run(process.execPath, [main, 'organizations', 'list', '--data-dir', dataDir], {
    env: {
      PATH: process.env.PATH,
      HOME: process.env.HOME,
      PORTOLAN_DATABASE__EMBEDDED__SETTINGS: 'fsync: false',
    },
  })
}

/**
 * Copies a data directory that is initialized once per run: `initdb` and the migrations cost about two
 * seconds of CPU, a copy a tenth of that.
 */
export const copyInitializedDataDir = async (target: string): Promise<void> => {
  const folder = inject('initializedDataDir')
  const [dataDir, lock, done] = ['data', 'lock', 'done'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ]
  // Test files run in parallel processes; the first one initializes for all.
  const isFirst = await mkdir(lock).then(
    () => true,
    () => false,
  )
  if (isFirst) {
    await initialize(dataDir)
    await mkdir(done)
  }
  const deadline = Date.now() + 60_000
  while (!existsSync(done)) {
    if (Date.now() > deadline) throw new Error('the data directory was not initialized in time')
    await delay(50)
  }
  // Keeps the owner: as root, the database runs as another user.
  await run('cp', ['-a', dataDir, target])
}
