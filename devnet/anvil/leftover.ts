import { execFile } from 'node:child_process'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'

const execute = promisify(execFile)
const fileOf = (directory: string) => join(directory, 'anvil.pid')

/** Ends a node on this state whose service was killed; two nodes must not write to one state. */
export async function endLeftover(directory: string): Promise<void> {
  const pid = Number(await readFile(fileOf(directory), 'utf8').catch(() => ''))
  if (!pid || !(await isOurs(pid, directory))) return
  process.kill(pid, 'SIGTERM')
  for (let attempt = 0; attempt < 50 && (await isOurs(pid, directory)); attempt++) await delay(100)
  if (await isOurs(pid, directory)) process.kill(pid, 'SIGKILL')
}

/** Remembers which process works on this state; the returned function forgets it. */
export async function noteProcess(directory: string, pid: number): Promise<() => Promise<void>> {
  await writeFile(fileOf(directory), `${pid}`)
  return () => rm(fileOf(directory), { force: true })
}

/** The number may belong to another program by now. */
const isOurs = (pid: number, directory: string): Promise<boolean> =>
  execute('ps', ['-o', 'args=', '-p', `${pid}`]).then(
    ({ stdout }) => stdout.includes(directory),
    () => false,
  )
