import type { FieldTable } from './notation.ts'

/**
 * Every difference between the specification's table and ours, one line each:
 * `page_size minimum: - -> 1`. Fields of ours that are marked as extensions are no difference.
 */
export function compare(spec: FieldTable, ours: FieldTable): string[] {
  const paths = new Set([...spec.keys(), ...ours.keys()])
  return [...paths].flatMap((path) => {
    const [theirs, mine] = [spec.get(path), ours.get(path)]
    if (!mine) return [`${path} is missing`]
    if (!theirs) return mine.extension ? [] : [`${path} is extra`]
    const words = new Set([...Object.keys(theirs), ...Object.keys(mine)])
    return [...words]
      .filter((word) => show(theirs[word]) !== show(mine[word]))
      .map((word) => `${path} ${word}: ${show(theirs[word])} -> ${show(mine[word])}`)
  })
}

const show = (value: unknown): string =>
  value === undefined ? '-' : Array.isArray(value) ? value.join('|') : String(value)
