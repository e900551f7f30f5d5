// Secrets of the configuration: literals or references (`file:`, `env:`), how they are read and how they are shown. What is
// shown cannot be used as a value: `complete.ts` refuses the mask.

import { readFileSync, statSync } from 'node:fs'
import { ConfigError, type Env, shownWord } from './problem.ts'

/** Whether a secret is named by `file:` or `env:` instead of being there itself. */
export const isReference = (text: string): boolean => /^(?:file|env):/.test(text)

/** The two parts of a reference; undefined when it is not one, or is malformed. */
export const parseReference = (
  text: string,
): { from: 'file'; path: string } | { from: 'env'; name: string } | undefined => {
  const name = /^env:([A-Za-z_][A-Za-z0-9_]*)$/.exec(text)?.[1]
  if (name !== undefined) return { from: 'env', name }
  const path = /^file:([^\0]+)$/.exec(text)?.[1]
  return path === undefined ? undefined : { from: 'file', path }
}

/** What is in place of a secret. Refused as a value, so that a printed configuration cannot be used by mistake. */
export const maskText = '********'

/** A secret as it may be shown: references stay, addresses keep what helps to recognise them. */
export const maskSecret = (value: string, mask: 'password' | 'path' | undefined): string => {
  if (isReference(value)) return value
  if (mask === undefined || !URL.canParse(value)) return maskText
  return mask === 'password' ? maskPassword(value) : maskPath(value)
}

const maskPassword = (value: string): string => {
  const url = new URL(value)
  const hidden = [...url.searchParams.keys()].filter((name) => /pass|secret|token|key/i.test(name))
  if (url.password === '' && hidden.length === 0) return value
  if (url.password !== '') url.password = maskText
  for (const name of hidden) url.searchParams.set(name, maskText)
  return url.href
}

// Providers put the access key into the path, the query or the user name.
const maskPath = (value: string): string => {
  const { protocol, host, pathname, search, hash, username, password } = new URL(value)
  const rest = `${pathname === '/' ? '' : pathname}${search}${hash}${username}${password}`
  return rest === '' ? value : `${protocol}//${host}/${maskText}`
}

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
