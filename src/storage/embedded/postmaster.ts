import { execFile } from 'node:child_process'
import { constants } from 'node:fs'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'

const run = promisify(execFile)

const pidFile = (data: string): string => join(data, 'postmaster.pid')

/** Whether a process exists and is more than an unreaped zombie. */
export const isAlive = async (pid: number): Promise<boolean> => {
  try {
    process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
  if (process.platform !== 'linux') return true
  // A container's first process may never reap: the state follows the name's closing parenthesis.
  const status = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
  return status !== '' && status.charAt(status.lastIndexOf(')') + 2) !== 'Z'
}

const commandOf = async (pid: number): Promise<string> => {
  if (process.platform === 'linux') {
    return (await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')).replaceAll('\0', ' ')
  }
  // macOS and the BSDs have no /proc.
  return run('ps', ['-ww', '-o', 'command=', '-p', `${pid}`]).then(
    ({ stdout }) => stdout,
    () => '',
  )
}

const readPidFile = (data: string): Promise<string | undefined> =>
  readFile(pidFile(data), 'utf8').catch(() => undefined)

/** The arguments that make a process the server of a data directory. */
export const serverArguments = (data: string, config: string): string[] => [
  '-D',
  data,
  '-c',
  `config_file=${config}`,
]

/** The living server of a data directory, if there is one; a reused process id does not pass for it. */
export const findPostmaster = async (data: string): Promise<number | undefined> => {
  const pid = Number.parseInt((await readPidFile(data)) ?? '', 10)
  if (!(pid > 0) || !(await isAlive(pid))) return undefined
  // The arguments name the data directory, so a server of another installation does not match.
  return (await commandOf(pid)).includes(`postgres -D ${data} `) ? pid : undefined
}

/** Lets a new server start over the pid file of a dead one, which PostgreSQL itself refuses in two cases. */
export const disownPidFile = async (data: string): Promise<void> => {
  let text = await readPidFile(data)
  if (text === '') {
    // Either a server is this moment writing the file, or one died doing so.
    await delay(500)
    text = await readPidFile(data)
    if (text === '') await rm(pidFile(data), { force: true })
  }
  if (!text) return
  // The process id may be in use again. Removing the file would also remove PostgreSQL's check for
  // orphaned sessions that still write; it passes over the id of its own parent, which we are.
  const flag = constants.O_WRONLY | constants.O_TRUNC | constants.O_NOFOLLOW
  await writeFile(pidFile(data), text.replace(/^\d*/, `${process.pid}`), { flag })
}
