import type { Moved } from '../../storage/archive/export.ts'
import type { OnProgress } from '../../storage/archive/tally.ts'
import { isWatched, type Shell } from '../shell.ts'

const terminalMs = 100
const logMs = 5_000

/** Shows the progress of a transfer: one updated line on a terminal, else a line occasionally. */
export function createTransferProgress(
  shell: Shell,
  now: () => number = () => performance.now(),
): { report: OnProgress; done(): void } {
  const watched = isWatched(shell.stderr, shell.env)
  let last = now()
  let shown = false
  return {
    report: ({ table, tablesDone, tableCount, rows, bytes }) => {
      if (now() - last < (watched ? terminalMs : logMs)) return
      last = now()
      shown = true
      const text = `${tablesDone}/${tableCount} tables, ${amount(rows, bytes)}, now ${table}`
      shell.stderr.write(watched ? `\r\u001b[2K${text}` : `${text}\n`)
    },
    done: () => {
      if (watched && shown) shell.stderr.write('\r\u001b[2K')
    },
  }
}

/** What was moved, in words. */
export const movedText = ({ tables, rows, bytes, schemaVersion }: Moved): string =>
  `${tables} tables, ${amount(rows, bytes)}, schema version ${schemaVersion}`

const amount = (rows: number, bytes: number): string =>
  `${rows.toLocaleString('en')} rows, ${(bytes / 1_048_576).toFixed(1)} MiB`
