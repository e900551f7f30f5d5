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
