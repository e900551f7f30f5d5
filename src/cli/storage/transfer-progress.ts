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
        const text = `${tablesDone}/${tableCount} tables, ${amount(rows, bytes)}`
        if (!totalRows) return `${text}, now ${table}`
        const speed = seconds > 0 ? rows / seconds : 0
        // The count is an estimate of the server.
        const share = Math.min(rows / totalRows, 0.99)
        return `${barText(share)}, ${text}, ${Math.floor(speed).toLocaleString('en')} rows/s, ${leftText(Math.max(totalRows - rows, 0), speed)}, now ${table}`
      }),
    done: line.done,
  }
}

/** What was moved, in words. */
export const movedText = ({ tables, rows, bytes, schemaVersion }: Moved): string =>
  `${tables} tables, ${amount(rows, bytes)}, schema version ${schemaVersion}`

const amount = (rows: number, bytes: number): string =>
  `${rows.toLocaleString('en')} rows, ${(bytes / 1_048_576).toFixed(1)} MiB`
