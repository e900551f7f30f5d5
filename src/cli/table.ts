/** Lines of text in columns, with a heading; the last column may be of any length. */
export function formatTable(
  heading: readonly string[],
  rows: readonly (readonly string[])[],
): string {
  const widths = heading.map((title, column) =>
    Math.max(title.length, ...rows.map((row) => (row[column] ?? '').length)),
  )
  return [heading, ...rows]
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] as number))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

/** A record as one line per field. */
export function formatRecord(fields: Readonly<Record<string, string>>): string {
  const width = Math.max(...Object.keys(fields).map((name) => name.length))
  return Object.entries(fields)
    .map(([name, value]) => `${name.padEnd(width)}  ${value}`.trimEnd())
    .join('\n')
}
