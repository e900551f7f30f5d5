import { copyFile, open, stat, truncate } from 'node:fs/promises'

const limit = 10 * 1024 * 1024

/** Keeps the server's log small: what is beyond the limit moves to one older file. */
export const boundLogFile = async (path: string): Promise<void> => {
  const size = await stat(path).then(
    (stats) => stats.size,
    () => 0,
  )
  if (size <= limit) return
  await copyFile(path, `${path}.1`)
  // The server appends through its own descriptor, so the file is emptied rather than replaced.
  await truncate(path)
}

/** The last lines of the log that say why a server gave up. */
export const readFailure = async (path: string, from: number): Promise<string> => {
  await using file = await open(path)
  const { size } = await file.stat()
  const length = Math.min(size - from, 16_384)
  if (length <= 0) return ''
  const { buffer } = await file.read(Buffer.alloc(length), 0, length, size - length)
  const lines = buffer.toString('utf8').trim().split('\n')
  const telling = lines.filter((line) => /FATAL|PANIC|ERROR|HINT|error while/.test(line))
  return (telling.length > 0 ? telling : lines).slice(-5).join('\n')
}
