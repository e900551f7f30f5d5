import { constants } from 'node:fs'
import { copyFile, type FileHandle, open, rm } from 'node:fs/promises'

// Ten megabytes of warnings are months of a usual server.
const limit = 10 * 1024 * 1024
const { O_APPEND, O_CREAT, O_NOFOLLOW, O_WRONLY } = constants

/** Opens the log for the server; never through a link, which the server's user could lay for root. */
export const openLogFile = (path: string): Promise<FileHandle> =>
  open(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW, 0o600)

/** Keeps the server's log small: what is beyond the limit moves to one older file. */
export const boundLogFile = async (path: string): Promise<void> => {
  await using file = await openLogFile(path)
  if ((await file.stat()).size <= limit) return
  await rm(`${path}.1`, { force: true })
  await copyFile(path, `${path}.1`, constants.COPYFILE_EXCL)
  // The server appends through its own descriptor, so the file is emptied rather than replaced.
  await file.truncate()
}

// Its answers to readiness probes.
const notYet = /the database system is (not yet accepting|starting up|in recovery|shutting down)/

/** The last lines of the log that say why a server gave up. */
export const readFailure = async (path: string, from: number): Promise<string> => {
  await using file = await open(path)
  const { size } = await file.stat()
  // The end is read only: `from` excludes what earlier starts have written, the bound a server that
  // wrote much.
  const length = Math.min(size - from, 16_384)
  if (length <= 0) return ''
  const { buffer } = await file.read(Buffer.alloc(length), 0, length, size - length)
  const lines = buffer.toString('utf8').trim().split('\n')
  const relevant = lines.filter(
    (line) => /FATAL|PANIC|ERROR|HINT|error while/.test(line) && !notYet.test(line),
  )
  return (relevant.length > 0 ? relevant : lines).slice(-5).join('\n')
}
