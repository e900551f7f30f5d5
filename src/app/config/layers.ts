// Command line over environment over file over defaults, key by key. A list replaces a list as a whole: mixing the nodes of
// two sources would be a surprise. Only a variable with an index in its name changes one item.

import type { Origin, Path } from './problem.ts'
import { type Problem, pathKey, pathText, problemAt } from './problem.ts'

/** One value put at one place by one source. */
export type Assignment = { path: Path; value: unknown; origin: Origin }

/** What the sources say together. */
export type Layers = {
  value: unknown
  problems: Problem[]
  /** The source of the value at a path; `default` when it is not set. */
  originOf: (path: Path) => Origin
  /** Where to look for a path that is not set: the source of its nearest parent. */
  nearestOrigin: (path: Path) => Origin
}

/** Splits a value into its parts, so that sources can be laid over each other key by key. Lists stay whole. */
export const assignmentsOf = (value: unknown, origin: Origin, path: Path = []): Assignment[] => {
  if (!isRecord(value)) return [{ path, value, origin }]
  return [
    // The section itself too: an empty one in the file is a value with a place.
    { path, value: {}, origin },
    ...Object.entries(value)
      .filter(([, part]) => part !== undefined)
      .flatMap(([key, part]) => assignmentsOf(part, origin, [...path, key])),
  ]
}

/** Whether a value is a section or a map. */
export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Lays assignments over each other; a later one wins. */
export const mergeLayers = (assignments: readonly Assignment[]): Layers => {
  const origins = new Map<string, Origin>()
  const problems: Problem[] = []
  const top: Record<string, unknown> = {}
  for (const { path, value, origin } of assignments) {
    const outcome = put(top, ['root', ...path], value)
    // One problem per list: every item after a gap would report the same.
    if (outcome === 'gap' && !problems.some(({ key }) => key && pathText(path).startsWith(key)))
      problems.push(problemAt(path, origin, 'leaves out the items before it in the list.'))
    if (outcome === 'done') mark(origins, path, value, origin)
  }
  const find = (path: Path) => origins.get(pathKey(path))
  return {
    value: top.root,
    problems,
    originOf: (path) => find(path) ?? { from: 'default' },
    nearestOrigin: (path) =>
      path
        .map((_, index) => find(path.slice(0, path.length - index)))
        .find((origin) => origin !== undefined) ??
      find([]) ?? { from: 'default' },
  }
}

const mark = (origins: Map<string, Origin>, path: Path, value: unknown, origin: Origin): void => {
  const key = pathKey(path)
  // A list replaces a list as a whole, so the origins of its old items go.
  if (Array.isArray(value))
    for (const other of origins.keys()) if (other.startsWith(`${key}[`)) origins.delete(other)
  origins.set(key, origin)
  if (typeof value !== 'object' || value === null) return
  for (const [name, part] of Object.entries(value))
    mark(origins, [...path, Array.isArray(value) ? Number(name) : name], part, origin)
}

const put = (top: object, path: Path, value: unknown): 'done' | 'gap' | 'kept' => {
  let holder = top as Record<string | number, unknown>
  for (const [depth, part] of path.entries()) {
    // A scalar where a section belongs is reported by the check, so nothing is written over it.
    if (typeof holder !== 'object' || holder === null) return 'kept'
    if (Array.isArray(holder) !== (typeof part === 'number')) return 'kept'
    if (Array.isArray(holder) && Number(part) > holder.length) return 'gap'
    const last = depth === path.length - 1
    if (last && isRecord(value) && (holder[part] ?? undefined) !== undefined) return 'kept'
    if (last) holder[part] = isRecord(value) ? emptyRecord() : structuredClone(value)
    else holder[part] ??= typeof path[depth + 1] === 'number' ? [] : emptyRecord()
    holder = holder[part] as Record<string | number, unknown>
  }
  return 'done'
}

// Without a prototype, `__proto__` is a key like any other.
const emptyRecord = (): Record<string, unknown> => Object.create(null)
