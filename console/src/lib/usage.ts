/** A row of GetUsage. */
export type UsageRow = {
  api_key_hint: string
  chain: string
  network: string
  method: string
  day: string
  calls: number
  errors: number
  refused: number
}

/** Calls of one group. */
export type UsageSum = {
  key: string
  names: readonly string[]
  calls: number
  errors: number
  refused: number
}

/** Sums usage by whatever the names are, the most calls first. */
export function sumUsage(
  rows: readonly UsageRow[],
  namesOf: (row: UsageRow) => readonly string[],
): UsageSum[] {
  const sums = new Map<string, UsageSum>()
  for (const row of rows) {
    const names = namesOf(row)
    const key = JSON.stringify(names)
    const sum = sums.get(key) ?? { key, names, calls: 0, errors: 0, refused: 0 }
    sum.calls += row.calls
    sum.errors += row.errors
    sum.refused += row.refused
    sums.set(key, sum)
  }
  return [...sums.values()].sort((a, b) => b.calls - a.calls || a.key.localeCompare(b.key))
}

const dayMs = 86_400_000
/** A line needs several days; the answer has the last thirty. */
const minDays = 7

/** Every day from the first to the last with a call, a week at least: a day without a call has no row. */
export function usageDays(rows: readonly UsageRow[]): string[] {
  if (rows.length === 0) return []
  const times = rows.map(({ day }) => Date.parse(`${day}T00:00:00Z`))
  const last = times.reduce((a, b) => Math.max(a, b))
  const first = times.reduce((a, b) => Math.min(a, b), last - (minDays - 1) * dayMs)
  return Array.from({ length: (last - first) / dayMs + 1 }, (_, index) =>
    new Date(first + index * dayMs).toISOString().slice(0, 10),
  )
}
