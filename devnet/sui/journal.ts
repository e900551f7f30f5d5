import {
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  truncateSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'

/** Lines on disk: what the ledger was at some point, and everything that happened since. */
export type Journal = {
  /** Writes before clients see the change. */
  append(record: object): void
  /** How many lines were added since the last snapshot. */
  length(): number
  /** Replaces everything by what the ledger is now. */
  replace(snapshot: Iterable<object>): void
  close(): void
}

const bytesPerWrite = 1 << 20

/** Opens the journal of a folder; the lines that are there are given, a torn last one is dropped. */
export function openJournal(directory: string): { journal: Journal; lines: unknown[] } {
  mkdirSync(directory, { recursive: true })
  const path = join(directory, 'sui-chain.jsonl')
  const lines = readLines(path)
  let file = openSync(path, 'a')
  let length = lines.length
  const journal: Journal = {
    append: (record) => {
      writeSync(file, `${JSON.stringify(record)}\n`)
      length++
    },
    length: () => length,
    replace: (snapshot) => {
      const fresh = openSync(`${path}.new`, 'w')
      let text = ''
      for (const record of snapshot) {
        text += `${JSON.stringify(record)}\n`
        if (text.length > bytesPerWrite) {
          writeSync(fresh, text)
          text = ''
        }
      }
      writeSync(fresh, text)
      fsyncSync(fresh)
      // A crash here leaves the old file or the new one, both complete.
      renameSync(`${path}.new`, path)
      closeSync(file)
      file = fresh
      length = 0
    },
    close: () => closeSync(file),
  }
  return { journal, lines }
}

function readLines(path: string): unknown[] {
  let bytes: Buffer
  try {
    bytes = readFileSync(path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
  const lines: unknown[] = []
  let begin = 0
  for (;;) {
    const end = bytes.indexOf(10, begin)
    if (end === -1) break
    lines.push(JSON.parse(bytes.toString('utf8', begin, end)))
    begin = end + 1
  }
  if (begin < bytes.length) truncateSync(path, begin)
  return lines
}
