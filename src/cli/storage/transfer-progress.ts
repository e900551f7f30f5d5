import type { Moved } from '../../storage/archive/export.ts'
import type { OnProgress } from '../../storage/archive/tally.ts'
import { barText, createProgressLine, leftText } from '../progress.ts'
import type { Shell } from '../shell.ts'

/** Shows the progress of a transfer, with speed and remaining time where the number of rows is known. */
export function createTransferProgress(
  shell: Shell,
  now: () => number = () => performance.now(),
): { report: OnProgress; done(): void } {
  const line = createProgressLine(shell, now)
  return {
    report: ({ table, tablesDone, tableCount, rows, bytes, totalRows }) =>
      line.show((seconds) => {
        const tables = `${tablesDone}/${tableCount} tables`
        if (!totalRows) return `${tables}, ${amount(rows, bytes)}, now ${table}`
        const speed = seconds > 0 ? rows / seconds : 0
        // The count is an estimate of the server.
        const share = Math.min(rows / totalRows, 0.99)
        const left = leftText(Math.max(totalRows - rows, 0), speed)
        // A terminal cuts the end: what matters most comes first.
        return `${barText(share)}, ${rows.toLocaleString('en')} rows, ${Math.floor(speed).toLocaleString('en')}/s, ${left}, ${tables}, ${megabytes(bytes)}, now ${table}`
      }),
    done: line.done,
  }
}

/** What was moved, in words. */
export const movedText = ({ tables, rows, bytes, schemaVersion }: Moved): string =>
  `${tables} tables, ${amount(rows, bytes)}, schema version ${schemaVersion}`

const amount = (rows: number, bytes: number): string =>
  `${rows.toLocaleString('en')} rows, ${megabytes(bytes)}`

const megabytes = (bytes: number): string => `${(bytes / 1_048_576).toFixed(1)} MiB`
