import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { layoutOf } from '../../storage/embedded/layout.ts'
import { lockDataDir } from '../../storage/embedded/lock.ts'
import { findPostmaster, isAlive } from '../../storage/embedded/postmaster.ts'

// Nothing else is touched: the folder may be one that the user keeps other things in.
const own = ['postgres', 'chains', 'master.key', 'connection.json', 'demo.json']
const stopTimeoutMs = 10_000

/** Forgets all that the embedded mode has kept; refused while a service uses it. */
export async function resetDataDir(dataDir: string): Promise<void> {
  const lock = await lockDataDir(dataDir)
  try {
    // A database that outlived a killed service would continue writing to deleted files.
    const pid = await findPostmaster(layoutOf(dataDir).data)
    if (pid !== undefined) await end(pid)
    for (const name of own) await rm(join(dataDir, name), { recursive: true, force: true })
  } finally {
    await lock.release()
  }
}

async function end(pid: number): Promise<void> {
  process.kill(pid, 'SIGINT')
  const deadline = Date.now() + stopTimeoutMs
  while (await isAlive(pid)) {
    // The first signal asks for a fast shutdown; a server that ignores it is killed.
    if (Date.now() > deadline) process.kill(pid, 'SIGKILL')
    await delay(50)
  }
}
