import { readFileSync, statSync } from 'node:fs'
import type { Env } from './env-source.ts'
import { ConfigError } from './problem.ts'
import { parseReference } from './reference.ts'
import { shownWord } from './text.ts'

const maxBytes = 65_536

/** The secret behind a literal, `file:/path` or `env:NAME`. `key` is what messages call it. */
export const resolveSecret = (
  reference: string,
  options: { env: Env; key?: string; warn?: (message: string) => void },
): string => {
  const name = options.key === undefined ? 'The secret' : `\`${options.key}\``
  const parsed = parseReference(reference)
  if (!parsed) return reference
  const refuse = (reason: string, cause?: unknown): never => {
    const message = `${name} is ${shownWord(reference)}, but ${reason}.`
    const place = options.key === undefined ? {} : { key: options.key }
    throw new ConfigError([{ message, ...place }], { cause })
  }
  if (parsed.from === 'env')
    return options.env[parsed.name] || refuse(`the variable ${shownWord(parsed.name)} is not set`)
  try {
    const { mode, size } = statSync(parsed.path)
    if (size > maxBytes) return refuse(`the file is larger than ${maxBytes} bytes`)
    if (mode & 0o004)
      options.warn?.(
        `${name} is read from ${parsed.path}, which every user of this machine can read. Run: chmod 600 ${parsed.path}`,
      )
    const text = readFileSync(parsed.path, 'utf8').replace(/\r?\n$/, '')
    return text || refuse('the file is empty')
  } catch (error) {
    if (error instanceof ConfigError) throw error
    return refuse(fileReason(error), error)
  }
}

const fileReason = (error: unknown): string => {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  if (code === 'ENOENT') return 'the file does not exist'
  if (code === 'EACCES' || code === 'EPERM') return 'this user may not read the file'
  if (code === 'EISDIR') return 'that is a folder'
  return `the file cannot be read (${String(code ?? error)})`
}
