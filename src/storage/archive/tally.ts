import { createHash } from 'node:crypto'

/** Counts what passes by. */
export type Tally = {
  add(chunk: Buffer): void
  rows(): number
  bytes(): number
  /** Can be asked once, at the end. */
  sha256(): string
}

// COPY escapes a newline within a value, so each one ends a row.
const newline = 0x0a

/** Counts rows, bytes and a checksum of COPY text, in which every row ends with the only newline it has. */
export const createTally = (): Tally => {
  const hash = createHash('sha256')
  let rows = 0
  let bytes = 0
  return {
    add: (chunk) => {
      hash.update(chunk)
      bytes += chunk.length
      for (let at = chunk.indexOf(newline); at !== -1; at = chunk.indexOf(newline, at + 1)) rows++
    },
    rows: () => rows,
    bytes: () => bytes,
    sha256: () => hash.digest('hex'),
  }
}

/** How far an export or import has come. */
export type Progress = {
  table: string
  tablesDone: number
  tableCount: number
  /** Rows and bytes of all tables so far. */
  rows: number
  bytes: number
  /** Estimate of the server; absent where it is not known. */
  totalRows?: number
}

/** Called with the progress. */
export type OnProgress = (progress: Progress) => void
