import { dirname, resolve } from 'node:path'
import { complete, findingText } from './complete.ts'
import { readConfigFile } from './config-file.ts'
import { type Env, readEnv } from './env-source.ts'
import type { Finding, Path } from './finding.ts'
import { assignmentsOf, isRecord, mergeLayers } from './layers.ts'
import { leavesOf, mapLeaves } from './leaves.ts'
import { rootNode } from './node.ts'
import { ConfigError, type Problem, placeOf, placeText, problemAt } from './problem.ts'
import { parseReference } from './reference.ts'
import { type Config, checkRules, type Overrides, type Settings } from './schema.ts'
import type { Origin, Source } from './source.ts'
import { pathKey, pathText } from './text.ts'
import { namedPath, unknownKeyHint } from './unknown-key.ts'

/** Where to look for a configuration. */
export type LoadOptions = { file?: string; env: Env; cwd: string; overrides?: Overrides }

/**
 * The configuration: overrides over environment over file over defaults.
 * The file is `file`, else `PORTOLAN_CONFIG`, else `portolan.yaml` in the working directory if it is there.
 * Throws a `ConfigError` with every problem at once.
 */
export const loadConfig = (options: LoadOptions): Config => {
  const file = readConfigFile(options)
  const fileLayer = file ? assignmentsOf(file.value ?? {}, { from: 'file', file: file.name }) : []
  const overrideLayer = assignmentsOf(options.overrides ?? {}, { from: 'override' })
  const env = readEnv(options.env, referredVariables([file?.value, options.env, options.overrides]))
  const layers = mergeLayers([...fileLayer, ...env.assignments, ...overrideLayer])
  const located = (path: Path, origin: Origin): Origin =>
    origin.from === 'file' ? { ...origin, ...file?.locate(path) } : origin
  const originOf = (path: Path) => located(path, layers.originOf(path))
  const checked = check(layers.value, (path) => located(path, layers.nearestOrigin(path)))
  const problems = [...env.problems, ...layers.problems, ...checked.problems]
  if (problems.length > 0) throw new ConfigError(problems)
  const base = (origin: Origin) =>
    origin.from === 'file' && file ? dirname(file.path) : options.cwd
  const settings = absolute(checked.settings, (path) => base(originOf(path)))
  return { ...settings, source: sourceOf(settings, originOf, file?.path) }
}

const check = (
  value: unknown,
  originOf: (path: Path) => Origin,
): { settings: Settings; problems: Problem[] } => {
  const problems: Problem[] = []
  const finding = (found: Finding) =>
    problems.push(problemAt(found.path, originOf(found.path), findingText(found)))
  const unknown = (path: Path) => problems.push(unknownKey(path, value, originOf))
  const settings = complete(rootNode, value ?? {}, [], { finding, unknown }) as Settings
  if (problems.length === 0) checkRules(settings).forEach(finding)
  return { settings, problems }
}

const unknownKey = (path: Path, root: unknown, originOf: (path: Path) => Origin): Problem => {
  const named = namedPath(path, valueAt(root, path))
  const origin = originOf(named)
  const hint = unknownKeyHint(named, path.length - 1)
  const message = `Unknown key \`${pathText(named)}\`${placeText(origin)}. ${hint}`
  return { message, ...placeOf(named, origin) }
}

const valueAt = (root: unknown, path: Path): unknown =>
  path.reduce<unknown>((value, part) => {
    if (Array.isArray(value)) return value[Number(part)]
    return isRecord(value) ? value[part] : undefined
  }, root)

// `master_key: env:PORTOLAN_MASTER_KEY` makes that variable a known one.
const referredVariables = (values: readonly unknown[]): Set<string> => {
  const names = new Set<string>()
  const visit = (value: unknown): void => {
    if (typeof value === 'object' && value !== null) Object.values(value).forEach(visit)
    const reference = typeof value === 'string' ? parseReference(value) : undefined
    if (reference?.from === 'env') names.add(reference.name)
  }
  visit(values)
  return names
}

const absolute = (settings: Settings, base: (path: Path) => string): Settings =>
  mapLeaves(rootNode, settings, ({ node, path, value }) => {
    if (typeof value !== 'string') return value
    if (node.path) return resolve(base(path), value)
    const reference = node.secret ? parseReference(value) : undefined
    return reference?.from === 'file' ? `file:${resolve(base(path), reference.path)}` : value
  }) as Settings

const sourceOf = (
  settings: Settings,
  originOf: (path: Path) => Origin,
  file: string | undefined,
): Source => {
  const origins = leavesOf(rootNode, settings).flatMap(({ path }) => {
    const origin = originOf(path)
    return origin.from === 'default' ? [] : [[pathKey(path), origin] as const]
  })
  return { ...(file === undefined ? {} : { file }), origins: Object.fromEntries(origins) }
}
