import { toJson } from './format.ts'

/** Rows as CSV (RFC 4180). A cell that a spreadsheet would run as a formula is quoted as text. */
export function toCsv(rows: readonly object[]): string {
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))]
  const lines = rows.map((row) =>
    names.map((name) => cell((row as Record<string, unknown>)[name])).join(','),
  )
  return `${[names.map(cell).join(','), ...lines].join('\r\n')}\r\n`
}

function cell(value: unknown): string {
  if (value === undefined || value === null) return ''
  const text = typeof value === 'object' ? toJson(value, 0) : String(value)
  const safe = /^[=+\-@\t\r]/.test(text) && !/^-?\d+(?:\.\d+)?$/.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

/** Offers a text as a file. */
export function download(name: string, type: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type }))
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(url), 10_000)
}

/** The most rows of one export; a file beyond that does not fit the memory of a page. */
export const maxExportRows = 500_000

/** Reads all pages of a list for an export. */
export async function allRows<T>(
  load: (page_token: string | undefined) => Promise<{ items: readonly T[]; next: string }>,
): Promise<T[]> {
  const rows: T[] = []
  for (let token: string | undefined; ; ) {
    const { items, next } = await load(token)
    rows.push(...items)
    if (!next || rows.length >= maxExportRows) return rows.slice(0, maxExportRows)
    token = next
  }
}
