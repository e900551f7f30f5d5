// The configuration: one YAML file, environment variables and command line options, checked against
// one schema. It uses `lib` and `contract` only. It guarantees that a loaded configuration is
// complete and valid, that every key is documented, that all problems are reported at once with
// their places, and that no secret is printed. Nothing but `app` and `cli` reads the environment.

import { dirname, resolve } from 'node:path'
import { findNearest } from '../../lib/nearest.ts'
import { complete, findingText, leafFault } from './complete.ts'
import { readEnv, readEnvChains } from './env-source.ts'
import { readConfigFile } from './file-source.ts'
import { assignmentsOf, isRecord, mergeLayers } from './layers.ts'
import { globalConfigProblems } from './lite-servers.ts'
import { leavesOf, mapLeaves, mapOf, type Node, nodeOfConfig, rootNodeOf } from './node.ts'
import {
  ConfigError,
  type Env,
  type Finding,
  type Origin,
  type Path,
  type Problem,
  pathKey,
  pathText,
  placeOf,
  placeText,
  problemAt,
  type Source,
  shownWord,
} from './problem.ts'
import { type Config, checkRules, type Overrides, type Settings } from './schema.ts'
import { isReference, parseReference, resolveSecret } from './secrets.ts'
import { readVariants, type VariantsByName } from './sections/chains.ts'

/** Where to look for a configuration. */
export type LoadOptions = { file?: string; env: Env; cwd: string; overrides?: Overrides }

/**
 * The configuration: overrides over environment over file over defaults.
 * The file is `file`, else `PORTOLAN_CONFIG`, else `portolan.yaml` in the working directory if it is there.
 * Throws a `ConfigError` with every problem at once.
 */
export const loadConfig = (options: LoadOptions): Config => {
  // The order of reading matters: the variants of chains decide which keys there are below them.
  const file = readConfigFile(options)
  const fileLayer = file ? assignmentsOf(file.value ?? {}, { from: 'file', file: file.name }) : []
  const overrideLayer = assignmentsOf(options.overrides ?? {}, { from: 'override' })
  const root = rootNodeOf(namedChains(file?.value, options))
  const referred = referredVariables([file?.value, options.env, options.overrides])
  const env = readEnv(options.env, referred, root)
  const layers = mergeLayers([...fileLayer, ...env.assignments, ...overrideLayer])
  const located = (path: Path, origin: Origin): Origin =>
    origin.from === 'file' ? { ...origin, ...file?.locate(path) } : origin
  const originOf = (path: Path) => located(path, layers.originOf(path))
  const checked = check(root, layers.value, (path) => located(path, layers.nearestOrigin(path)))
  const problems = [...env.problems, ...layers.problems, ...checked.problems]
  if (problems.length > 0) throw new ConfigError(problems)
  // A relative path is relative to the file that names it; from elsewhere to the working directory.
  const base = (origin: Origin) =>
    origin.from === 'file' && file ? dirname(file.path) : options.cwd
  const settings = absolute(root, checked.settings, (path) => base(originOf(path)))
  return { ...settings, source: sourceOf(root, settings, originOf, file?.path) }
}

/** The chains that the sources name together, with their variants. */
const namedChains = (file: unknown, { env, overrides }: LoadOptions): VariantsByName => {
  const chains: Record<string, Record<string, unknown>> = {}
  const written = isRecord(file) ? file.chains : undefined
  for (const source of [written, readEnvChains(env), overrides?.chains])
    for (const [name, said] of Object.entries(isRecord(source) ? source : {}))
      chains[name] = { ...chains[name], ...(isRecord(said) && said) }
  return readVariants(chains)
}

const check = (
  root: Node,
  value: unknown,
  originOf: (path: Path) => Origin,
): { settings: Settings; problems: Problem[] } => {
  const problems: Problem[] = []
  const finding = (found: Finding) =>
    problems.push(problemAt(found.path, originOf(found.path), findingText(found)))
  const unknown = (path: Path) => problems.push(unknownKey(path, { root, value }, originOf))
  const settings = complete(root, value ?? {}, [], { finding, unknown }) as Settings
  // Rules between keys only for values that are valid by themselves, or one mistake would be
  // reported twice.
  if (problems.length === 0) checkRules(settings).forEach(finding)
  return { settings, problems }
}

const unknownKey = (
  path: Path,
  { root, value }: { root: Node; value: unknown },
  originOf: (path: Path) => Origin,
): Problem => {
  const named = namedPath(path, valueAt(value, path))
  const origin = originOf(named)
  const hint = unknownKeyHint(root, named, path.length - 1)
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

const absolute = (root: Node, settings: Settings, base: (path: Path) => string): Settings =>
  mapLeaves(root, settings, ({ node, path, value }) => {
    if (typeof value !== 'string') return value
    if (node.path) return resolve(base(path), value)
    const reference = node.secret ? parseReference(value) : undefined
    return reference?.from === 'file' ? `file:${resolve(base(path), reference.path)}` : value
  }) as Settings

const sourceOf = (
  root: Node,
  settings: Settings,
  originOf: (path: Path) => Origin,
  file: string | undefined,
): Source => {
  // Defaults are not listed: what has no origin is a default.
  const origins = leavesOf(root, settings).flatMap(({ path }) => {
    const origin = originOf(path)
    return origin.from === 'default' ? [] : [[pathKey(path), origin] as const]
  })
  return { ...(file === undefined ? {} : { file }), origins: Object.fromEntries(origins) }
}

/** The path to name for an unknown key: down to the one key inside it, where a person looks for the typo. */
export const namedPath = (path: Path, value: unknown): Path => {
  let here = path
  let part = value
  while (isRecord(part)) {
    // More than one key inside is more likely a section in the wrong place than a typo.
    const [first, second] = Object.keys(part)
    if (first === undefined || second !== undefined) break
    here = [...here, first]
    part = part[first]
  }
  return here
}

/** What to write instead of an unknown key, as a sentence. `known` is how many parts of the path exist. */
export const unknownKeyHint = (root: Node, path: Path, known: number): string => {
  const parent = path.slice(0, known)
  const name = pathKey(path.slice(known))
  const siblings = nodeAt(root, parent)
  const near = findNearest(name, keysBelow(siblings))
  if (near !== undefined)
    return near === name ? nested(near) : didYouMean(pathText([...parent, near]))
  // The right key in the wrong section, such as `port` at the top.
  const places = [...keysBelow(root)].filter((key) => key.split('.').at(-1) === path.at(-1))
  if (places.length === 1) return didYouMean(places[0]!)
  return `The keys here are ${Object.keys(siblings?.properties ?? {})
    .map(shownWord)
    .join(', ')}.`
}

const didYouMean = (key: string): string => `Did you mean \`${key}\`?`

// A key with a dot in it is one key to YAML.
const nested = (key: string): string => {
  const dot = key.lastIndexOf('.')
  return `Write \`${key.slice(dot + 1)}\` on a line of its own below \`${key.slice(0, dot)}:\`.`
}

const nodeAt = (root: Node, path: Path): Node | undefined =>
  path.reduce<Node | undefined>(
    (node, part) =>
      node && (node.properties?.[part] ?? mapOf(node)?.entry ?? (node.items as Node | undefined)),
    root,
  )

function* keysBelow(node: Node | undefined, prefix = ''): Generator<string> {
  for (const [name, child] of Object.entries(node?.properties ?? {})) {
    yield prefix + name
    yield* keysBelow(child, `${prefix}${name}.`)
  }
}

/** Everything that is wrong with a configuration, its secret references included; empty when it is fine. */
export const checkConfig = (options: LoadOptions): Problem[] => {
  try {
    return checkSecrets(loadConfig(options), { env: options.env })
  } catch (error) {
    if (error instanceof ConfigError) return [...error.problems]
    throw error
  }
}

/** References and files of a loaded configuration that lead nowhere, or to something that does not fit the key. */
export const checkSecrets = (
  config: Config,
  options: { env: Env; warn?: (message: string) => void },
): Problem[] => [
  ...globalConfigProblems(config.chains),
  ...leavesOf(nodeOfConfig(config), config).flatMap(({ path, node, value }): Problem[] => {
    if (!node.secret || typeof value !== 'string' || !isReference(value)) return []
    const key = pathText(path)
    try {
      const secret = resolveSecret(value, { ...options, key })
      // A reference to a reference is a mistake: the file would be read by its name.
      const must = isReference(secret) ? 'be the secret itself' : leafFault(node, secret)
      if (must === undefined) return []
      return [
        { message: `\`${key}\` is ${shownWord(value)}, and what is there must ${must}.`, key },
      ]
    } catch (error) {
      if (error instanceof ConfigError) return [...error.problems]
      throw error
    }
  }),
]
