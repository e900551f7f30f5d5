// The configuration file: YAML with the position of every part, so that a problem of a value names its line. Size, depth
// and aliases are bounded, because the file may be the wrong one. Variables that hold YAML are parsed here as well.

import { readFileSync, statSync } from 'node:fs'
import { relative, resolve } from 'node:path'
import { type Document, isAlias, isMap, isScalar, isSeq, LineCounter, parseDocument } from 'yaml'
import { ConfigError, type Env, type Path, type Problem, safeText, shownWord } from './problem.ts'

/** A configuration file: its full path, the name that messages use, and what it says. */
export type ConfigFile = YamlSource & { path: string; name: string }

// Far above any configuration; a wrong file must not fill the memory.
const maxBytes = 1_048_576

/** Reads the file that is named, or the one in the working directory; undefined when there is none. */
export const readConfigFile = (options: {
  file?: string
  env: Env
  cwd: string
}): ConfigFile | undefined => {
  const named = options.file ?? (options.env.PORTOLAN_CONFIG || undefined)
  const path = resolve(options.cwd, named ?? 'portolan.yaml')
  const short = relative(options.cwd, path)
  const name = short.startsWith('..') ? path : short
  // A file that was named must exist; the default one may be missing.
  const text = readText(path, name, named !== undefined)
  return text === undefined ? undefined : { path, name, ...parseYaml(text, name) }
}

const readText = (path: string, name: string, mustExist: boolean): string | undefined => {
  try {
    if (statSync(path).size > maxBytes) throw refusal(name, 'is larger than 1 MiB.')
    return new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(path))
  } catch (error) {
    if (error instanceof ConfigError) throw error
    const code = error instanceof Error && 'code' in error ? error.code : undefined
    if (code === 'ENOENT' && !mustExist) return undefined
    throw refusal(name, reason(code, error), error)
  }
}

const reason = (code: unknown, error: unknown): string => {
  if (code === 'ENOENT' || code === 'ENOTDIR') return 'does not exist.'
  if (code === 'EACCES' || code === 'EPERM') return 'may not be read by this user.'
  if (code === 'EISDIR') return 'is a folder.'
  if (code === 'ERR_ENCODING_INVALID_ENCODED_DATA') return 'is not UTF-8 text.'
  return `cannot be read (${String(code ?? error)}).`
}

const refusal = (name: string, reason: string, cause?: unknown): ConfigError =>
  new ConfigError([{ message: `The configuration file ${name} ${reason}`, file: name }], { cause })

type Position = { line: number; column: number }

/** A parsed text: its value, and where in the text each part of it stands. */
export type YamlSource = { value: unknown; locate: (path: Path) => Position | undefined }

// Bounds of the walks over the value, which are recursive.
const maxDepth = 64
const maxAliases = 100
const tooDeep = `is nested deeper than ${maxDepth} levels.`

/** Parses YAML; everything that is wrong with it comes as one `ConfigError`. `name` is what messages call the text. */
export const parseYaml = (text: string, name: string): YamlSource => {
  const lines = new LineCounter()
  const document = guard(name, () =>
    parseDocument(text, {
      lineCounter: lines,
      prettyErrors: false,
      logLevel: 'error',
      stringKeys: true,
      // Tags such as !!set and !!binary make values that no key takes.
      resolveKnownTags: false,
    }),
  )
  const at = (offset: number): Position => {
    const { line, col } = lines.linePos(offset)
    return { line, column: col }
  }
  // Warnings count as well: a tag that YAML does not know would silently turn into plain text.
  const faults = [...document.errors, ...document.warnings]
  // The parser reports a text that is nested too deep as an overflow of its own stack.
  if (faults.some((fault) => /call stack|stack overflow/i.test(fault.message)))
    throw new ConfigError([{ message: `${name} ${tooDeep}`, file: name }])
  if (faults.length > 0)
    throw new ConfigError(
      // What follows the first few faults is mostly their echo.
      faults.slice(0, 5).map((fault): Problem => {
        const place = at(fault.pos[0])
        const message = `${name} line ${place.line}: ${sentence(fault.code, fault.message)}`
        return { message, file: name, ...place }
      }),
    )
  const value = guard(name, () => {
    const plain: unknown = document.toJS({ maxAliasCount: maxAliases })
    if (isDeeperThan(plain, maxDepth)) throw new RangeError('too deep')
    return plain
  })
  return {
    value,
    locate: (path) => {
      const offset = offsetOf(document, path)
      return offset === undefined ? undefined : at(offset)
    },
  }
}

const offsetOf = (document: Document, path: Path): number | undefined => {
  let node: unknown = document.contents
  let offset: number | undefined
  // The place of the nearest part that exists: a missing key is reported at its section.
  for (const part of path) {
    if (isAlias(node)) node = node.resolve(document)
    if (isMap(node)) {
      const pair = node.items.find((item) => isScalar(item.key) && item.key.value === part)
      if (!pair) return offset
      offset = isScalar(pair.key) ? (pair.key.range?.[0] ?? offset) : offset
      node = pair.value
    } else if (isSeq(node) && typeof part === 'number') {
      node = node.items[part]
      const range = (node as { range?: [number, number, number] } | undefined)?.range
      offset = range?.[0] ?? offset
    } else return offset
  }
  return offset
}

const guard = <result>(name: string, run: () => result): result => {
  try {
    return run()
  } catch (error) {
    throw new ConfigError([{ message: `${name} ${yamlReason(error)}`, file: name }], {
      cause: error,
    })
  }
}

const yamlReason = (error: unknown): string => {
  const message = error instanceof Error ? error.message : String(error)
  const alias = /^Unresolved alias.*: (\S+)$/.exec(message)?.[1]
  if (alias !== undefined)
    return `uses the alias ${shownWord(`*${alias}`)}, which is not set above it.`
  if (error instanceof ReferenceError)
    return `repeats itself through aliases more than ${maxAliases} times. Write the values out.`
  if (error instanceof RangeError) return tooDeep
  return `cannot be read as YAML: ${safeText(message)}.`
}

const sentence = (code: string, message: string): string => {
  if (code === 'DUPLICATE_KEY') return 'this key is there twice in one section. Keep one of them.'
  if (code === 'TAB_AS_INDENT') return 'a tab cannot indent YAML. Use spaces.'
  if (code === 'MULTIPLE_DOCS')
    return 'a second document starts here. A configuration is one document, without `---` inside.'
  if (code === 'NON_STRING_KEY') return 'a key must be plain text.'
  return `${safeText(message.replace(/\s*\n[\s\S]*$/, '').replace(/[.:\s]+$/, ''))}.`
}

const isDeeperThan = (value: unknown, levels: number): boolean =>
  typeof value === 'object' &&
  value !== null &&
  (levels === 0 || Object.values(value).some((part) => isDeeperThan(part, levels - 1)))
