import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, statfsSync } from 'node:fs'
import { freemem } from 'node:os'
import { join } from 'node:path'

const memory = '/dev/shm'
const prefix = 'pt-'
const tmpfs = 0x01021994
const gibibyte = 2 ** 30

/**
 * A folder in memory for everything that tests write below `tmpdir()`: data directories of databases, states of chains.
 * Written to a disk, the same run waits for it, for up to 40 % of single seconds. Undefined where the machine has
 * none with enough room; tests then use the usual place. Its name is short: sockets in it have a limit of 108 bytes.
 */
export const makeFolderInMemory = (): string | undefined => {
  if (process.platform !== 'linux' || !hasRoom()) return undefined
  for (const name of readdirSync(memory)) if (isLeftBehind(name)) remove(join(memory, name))
  const folder = join(memory, `${prefix}${process.pid}`)
  mkdirSync(folder)
  // As the usual place: services and databases of other users make folders in it.
  chmodSync(folder, 0o1777)
  return folder
}

const remove = (folder: string) => rmSync(folder, { recursive: true, force: true })

/**
 * The shared servers take 160 MB, and few programs with a data directory of their own run at a time. Programs may be started
 * from it: some containers forbid that.
 */
function hasRoom(): boolean {
  try {
    const { type, bavail, bsize } = statfsSync(memory)
    const mount = readFileSync('/proc/mounts', 'utf8')
      .split('\n')
      .findLast((line) => line.split(' ')[1] === memory)
    const allowsPrograms = mount?.split(' ')[3]?.split(',').includes('noexec') === false
    const hasMemory = freemem() >= 8 * gibibyte
    return type === tmpfs && bavail * bsize >= 4 * gibibyte && hasMemory && allowsPrograms
  } catch {
    return false
  }
}

/** Of a run that was killed. */
function isLeftBehind(name: string): boolean {
  const pid = name.startsWith(prefix) ? Number(name.slice(prefix.length)) : Number.NaN
  if (!Number.isInteger(pid)) return false
  try {
    process.kill(pid, 0)
    return false
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH'
  }
}
