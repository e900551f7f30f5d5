import { readFileSync, statSync } from 'node:fs'
import { relative, resolve } from 'node:path'
import type { Env } from './env-source.ts'
import { ConfigError } from './problem.ts'
import { parseYaml, type YamlSource } from './yaml-source.ts'

/** A configuration file: its full path, the name that messages use, and what it says. */
export type ConfigFile = YamlSource & { path: string; name: string }

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
