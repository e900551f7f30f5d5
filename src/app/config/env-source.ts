// Environment variables as a source of the configuration. An unknown variable with our prefix is refused: a spelling mistake would
// otherwise be a setting that silently does not apply.

import { findNearest } from '../../lib/nearest.ts'
import { parseYaml } from './file-source.ts'
import { type Assignment, assignmentsOf, isRecord } from './layers.ts'
import { isContainer, mapOf, type Node, rootNode } from './node.ts'
import {
  ConfigError,
  type Env,
  type Origin,
  type Path,
  type Problem,
  shownWord,
} from './problem.ts'

/** Start of every variable of ours; two underscores go one level down. */
export const prefix = 'PORTOLAN_'

/** Variables with a name of their own, and the key that each one sets. */
export const shortVariables: Readonly<Record<string, readonly string[]>> = {
  PORTOLAN_DATA_DIR: ['data_dir'],
  PORTOLAN_PORT: ['server', 'port'],
  DATABASE_URL: ['database', 'url'],
  REDIS_URL: ['redis', 'url'],
}

/** Variables of ours that are not keys: the file, what the command line signs with, local nodes. */
export const reservedVariables: ReadonlySet<string> = new Set([
  'PORTOLAN_CONFIG',
  'PORTOLAN_API_KEY',
  'PORTOLAN_API_SECRET',
  'PORTOLAN_BASE_URL',
  'PORTOLAN_ANVIL',
  'PORTOLAN_CAST',
])

/** The variable that sets a key. */
export const variableOf = (path: Path): string => `${prefix}${path.join('__').toUpperCase()}`

/**
 * Whether Kubernetes set the variable. It sets such variables in every container for a Service named `portolan`
 * in the old style of Docker links, with `PORTOLAN_PORT=tcp://…` among them.
 */
export const isForeignVariable = (variable: string, text: string): boolean =>
  /^PORTOLAN_(?:[A-Z0-9_]+_)?SERVICE_(?:HOST|PORT(?:_[A-Z0-9_]+)?)$/.test(variable) ||
  /^PORTOLAN_(?:[A-Z0-9_]+_)?PORT_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?$/.test(variable) ||
  (/^PORTOLAN_(?:[A-Z0-9_]+_)?PORT$/.test(variable) && /^(?:tcp|udp|sctp):\/\//.test(text))

/** What the environment says about the configuration. `allowed` are names that secrets refer to. */
export const readEnv = (
  env: Env,
  allowed: ReadonlySet<string>,
  root: Node = rootNode,
): { assignments: Assignment[]; problems: Problem[] } => {
  const assignments: Assignment[] = []
  const problems: Problem[] = []
  // In a fixed order: of two variables for one key the same one must win on every machine.
  for (const variable of Object.keys(env).sort(byPath)) {
    const text = env[variable]
    // `VAR=` in a compose file or a unit means "not set".
    if (text === undefined || text === '' || isForeignVariable(variable, text)) continue
    const path = pathOf(variable, root)
    if (path === undefined) continue
    if (path === 'unknown') {
      if (!allowed.has(variable)) problems.push(unknownVariable(variable, root))
      continue
    }
    try {
      assignments.push(...read(path.node, path.path, text, { from: 'env', variable }))
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
      problems.push(...error.problems.map(({ message }) => ({ message, variable })))
    }
  }
  return { assignments, problems }
}

/**
 * The chains that variables name, with what they say of the variant: the keys below a chain depend on it, so it is
 * read first.
 */
export const readEnvChains = (env: Env): Record<string, Record<string, unknown>> => {
  const chains: Record<string, Record<string, unknown>> = {}
  const add = (name: string, said: unknown) => {
    chains[name] = { ...chains[name], ...(isRecord(said) && said) }
  }
  for (const [variable, text] of Object.entries(env)) {
    // Two underscores separate levels, so a name with an underscore stays whole.
    const [first, second = '', ...keys] = variable.split('__')
    if (first !== `${prefix}CHAINS` || !text) continue
    const name = second.toLowerCase().replaceAll('_', '-')
    const key = keys.join('__').toLowerCase()
    if (second === '') for (const [each, said] of Object.entries(parsed(text))) add(each, said)
    else if (key === '') add(name, parsed(text))
    else
      add(
        name,
        key === 'variant'
          ? { variant: text }
          : key === 'variants'
            ? { variants: parsedList(text) }
            : {},
      )
  }
  return chains
}

// What is not YAML is reported where the variable itself is read.
const parsed = (text: string): Record<string, unknown> => {
  const value = yamlValue(text)
  return isRecord(value) ? value : {}
}

const parsedList = (text: string): unknown[] => {
  const value = yamlValue(text)
  return Array.isArray(value) ? value : []
}

const yamlValue = (text: string): unknown => {
  try {
    return parseYaml(text, 'The value').value
  } catch {
    return undefined
  }
}

// Short forms first, so that the full name wins; then `…UPSTREAMS` before `…UPSTREAMS__0__URL`, and 2 before 10.
const byPath = (a: string, b: string): number => {
  const [left, right] = [orderOf(a), orderOf(b)]
  const differs = left.findIndex((part, index) => part !== right[index])
  if (differs === -1) return left.length - right.length
  return (left[differs] ?? '').localeCompare(right[differs] ?? '', 'en', { numeric: true })
}

const orderOf = (variable: string): string[] =>
  Object.hasOwn(shortVariables, variable) ? ['', variable] : variable.split('__')

const pathOf = (
  variable: string,
  root: Node,
): { path: Path; node: Node } | 'unknown' | undefined => {
  const short = Object.hasOwn(shortVariables, variable) ? shortVariables[variable] : undefined
  if (short) return walk(short, root) ?? 'unknown'
  if (!variable.startsWith(prefix) || reservedVariables.has(variable)) return undefined
  return walk(variable.slice(prefix.length).split('__'), root) ?? 'unknown'
}

const walk = (parts: readonly string[], root: Node): { path: Path; node: Node } | undefined => {
  let node = root
  const path: (string | number)[] = []
  for (const part of parts) {
    const name = part.toLowerCase()
    const map = mapOf(node)
    // A name of a variable has no dash: an underscore stands for it.
    const key = [name, name.replaceAll('_', '-')].find(
      (found) => node.properties && Object.hasOwn(node.properties, found),
    )
    if (key !== undefined) {
      node = node.properties![key]!
      path.push(key)
    } else if (map && name !== '') {
      node = map.entry
      // The pattern of the map decides: names of headers keep their underscores.
      path.push(new RegExp(map.pattern).test('a-b') ? name.replaceAll('_', '-') : name)
    } else if (node.items && /^\d{1,3}$/.test(part)) {
      node = node.items
      path.push(Number(part))
    } else return undefined
  }
  return { path, node }
}

const read = (node: Node, path: Path, text: string, origin: Origin): Assignment[] => {
  if (!isContainer(node)) return [{ path, value: scalar(node, text), origin }]
  const variable = origin.from === 'env' ? origin.variable : ''
  return assignmentsOf(parseYaml(text, `The variable ${shownWord(variable)}`).value, origin, path)
}

const isNumeric = ({ type }: Node): boolean => type === 'integer' || type === 'number'

const scalar = (node: Node, text: string): unknown => {
  // One value or a list of them: written as in the file.
  if (node.anyOf?.some(isContainer)) return parseYaml(text, 'The value').value
  if (isNumeric(node) || node.anyOf?.every((one) => isNumeric(one) || one.const !== undefined))
    // A text that is not a number stays a text, and the check names what is expected.
    return /^-?\d+(?:\.\d+)?$/.test(text) ? Number(text) : text
  if (node.type !== 'boolean') return text
  if (text === 'true' || text === '1') return true
  return text === 'false' || text === '0' ? false : text
}

const unknownVariable = (variable: string, root: Node): Problem => {
  const meant = findNearest(variable, knownVariables(root))
  const hint =
    meant === undefined
      ? 'Names follow the keys: `PORTOLAN_SERVER__PORT` sets `server.port`.'
      : `Did you mean ${shownWord(meant)}?`
  return { message: `Unknown variable ${shownWord(variable)}. ${hint}`, variable }
}

const knownVariables = (root: Node): string[] => [
  ...Object.keys(shortVariables),
  ...reservedVariables,
  ...namesBelow(root, []),
]

function* namesBelow(node: Node, path: Path): Generator<string> {
  for (const [name, child] of Object.entries(node.properties ?? {})) {
    const here = [...path, name]
    yield variableOf(here)
    yield* namesBelow(child, here)
  }
}
