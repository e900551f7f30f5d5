import { type FileHandle, open } from 'node:fs/promises'
import { resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import { usageError } from '../cli-error.ts'
import { type GlobalOptions, print, type Shell } from '../shell.ts'
import { type LogFilter, lineText, readLine } from './line.ts'

type Options = GlobalOptions & LogFilter & { follow?: boolean; json?: boolean }

// Polled and not watched: events of the file system are unreliable on network and container volumes.
const pollMs = 500
// Memory is bounded by this and by the longest line.
const chunkBytes = 65_536

/** Prints the lines of a log that pass the filter. */
export async function runLogs(
  shell: Shell,
  file: string | undefined,
  options: Options,
): Promise<void> {
  const show = (text: string) => {
    const line = readLine(text, options)
    if (line !== undefined) print(shell, options.json ? text : lineText(line, shell.stdout))
  }
  if (file === undefined) {
    if (shell.stdin.isTTY)
      throw usageError('Name a log file, or send the log to the standard input.')
    for await (const text of createInterface({
      input: shell.stdin,
      crlfDelay: Number.POSITIVE_INFINITY,
    }))
      show(text)
    return
  }
  const path = resolve(shell.cwd, file)
  const handle = await open(path).catch((error: NodeJS.ErrnoException) => {
    throw usageError(`The file ${path} cannot be read (${error.code}).`)
  })
  try {
    await readFrom(handle, { follow: options.follow === true, show })
  } finally {
    await handle.close()
  }
}

async function readFrom(
  handle: FileHandle,
  { follow, show }: { follow: boolean; show(text: string): void },
): Promise<void> {
  const stopping = new AbortController()
  const stop = () => stopping.abort()
  process.once('SIGINT', stop)
  try {
    let position = 0
    let rest = ''
    // With state: a character may lie across two chunks.
    const decoder = new TextDecoder()
    while (!stopping.signal.aborted) {
      const { bytesRead, buffer } = await handle.read(
        Buffer.alloc(chunkBytes),
        0,
        chunkBytes,
        position,
      )
      position += bytesRead
      rest += decoder.decode(buffer.subarray(0, bytesRead), { stream: true })
      const lines = rest.split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) show(line)
      if (bytesRead > 0) continue
      if (!follow) break
      // A file that became shorter was rotated by truncation.
      if ((await handle.stat()).size < position) position = 0
      await delay(pollMs, undefined, { signal: stopping.signal }).catch(() => {})
    }
    if (rest !== '') show(rest)
  } finally {
    process.off('SIGINT', stop)
  }
}
