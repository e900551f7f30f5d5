import { execFile } from 'node:child_process'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'

const execute = promisify(execFile)

/** What works on a folder: an anvil on its state, or the keeper on all chains. */
export type Occupant = 'anvil' | 'keeper'

const fileOf = (directory: string, who: Occupant) => join(directory, `${who}.pid`)

// The keeper ends by itself when its service is gone, as soon as its chains are written.
const patience: Readonly<Record<Occupant, number>> = { anvil: 5_000, keeper: 15_000 }

/** Ends a process on this folder whose service was killed; two must not write to one state. */
export async function endLeftover(directory: string, who: Occupant): Promise<void> {
  const pid = Number(await readFile(fileOf(directory, who), 'utf8').catch(() => ''))
  if (!pid || pid === process.pid || !(await isOurs(pid, directory))) return
  signal(pid, 'SIGTERM')
  const deadline = Date.now() + patience[who]
  while (Date.now() < deadline && (await isOurs(pid, directory))) await delay(100)
  if (await isOurs(pid, directory)) signal(pid, 'SIGKILL')
}

/** Remembers which process works on this folder; the returned function forgets it. */
export async function noteProcess(
  directory: string,
  who: Occupant,
  pid: number,
): Promise<() => Promise<void>> {
  await mkdir(directory, { recursive: true })
  await writeFile(fileOf(directory, who), `${pid}`)
  return () => rm(fileOf(directory, who), { force: true })
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch {
    // It has ended meanwhile.
  }
}

/** The number may belong to another program by now. */
const isOurs = (pid: number, directory: string): Promise<boolean> =>
  execute('ps', ['-ww', '-o', 'args=', '-p', `${pid}`]).then(
    ({ stdout }) => stdout.includes(directory),
    () => false,
  )
