import type { Output } from './shell.ts'

type Rows = readonly (readonly string[])[]

// Less room than this for the last column makes its text a narrow ribbon.
const leastRoom = 24

/** The columns of a terminal. What is not one (a file, a pipe) has no limit: other programs read lines there. */
export const columnsOf = ({ isTTY, columns }: Output): number =>
  isTTY && columns ? columns : Number.POSITIVE_INFINITY

/**
 * Lines of text in columns, with a heading. What is wider than the terminal has its last column wrapped; where that leaves too
 * little room, every row becomes a record, as `\x auto` of psql does it. Nothing is cut off.
 */
export function formatTable(
  heading: readonly string[],
  rows: Rows,
  columns = Number.POSITIVE_INFINITY,
): string {
  const widths = heading.map((title, column) =>
    Math.max(title.length, ...rows.map((row) => (row[column] ?? '').length)),
  )
  const before = widths.slice(0, -1).reduce((sum, width) => sum + width + 2, 0)
  if (before + (widths.at(-1) ?? 0) <= columns) return linesOf([heading, ...rows], widths)
  const room = columns - before
  if (room < Math.max(leastRoom, longestWord(rows, heading.length - 1)))
    return rows.map((row) => recordOf(heading, row, columns)).join('\n\n')
  const wrapped = rows.flatMap((row) => {
    const [first = '', ...more] = wrapText(row[heading.length - 1] ?? '', room)
    const rest = more.map((line) => [...widths.slice(0, -1).map(() => ''), line])
    return [[...row.slice(0, heading.length - 1), first], ...rest]
  })
  return linesOf([heading, ...wrapped], widths)
}

const linesOf = (rows: Rows, widths: readonly number[]): string =>
  rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] as number))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')

const longestWord = (rows: Rows, column: number): number =>
  Math.max(0, ...rows.flatMap((row) => (row[column] ?? '').split(' ').map((word) => word.length)))

function recordOf(heading: readonly string[], row: readonly string[], columns: number): string {
  const width = Math.max(...heading.map((title) => title.trim().length))
  return heading
    .slice(0, row.length)
    .flatMap((title, column) =>
      wrapText((row[column] as string).trim(), columns - width - 2).map((line, at) =>
        `${(at === 0 ? title.trim() : '').padEnd(width)}  ${line}`.trimEnd(),
      ),
    )
    .join('\n')
}

/** Lines of at most so many characters, broken at spaces, and inside of a word that is longer. */
export function wrapText(text: string, width: number): string[] {
  if (text.length <= width) return [text]
  const lines: string[] = ['']
  for (const word of text.split(' ')) {
    const last = lines.at(-1) as string
    const joined = last === '' ? word : `${last} ${word}`
    if (joined.length <= width) {
      lines[lines.length - 1] = joined
      continue
    }
    if (last === '') lines.pop()
    for (let at = 0; at < word.length; at += width) lines.push(word.slice(at, at + width))
  }
  return lines
}

/** A record as one line per field. */
export function formatRecord(fields: Readonly<Record<string, string>>): string {
  const width = Math.max(...Object.keys(fields).map((name) => name.length))
  return Object.entries(fields)
    .map(([name, value]) => `${name.padEnd(width)}  ${value}`.trimEnd())
    .join('\n')
}
