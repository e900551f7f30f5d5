import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { text } from 'node:stream/consumers'
import { usageError } from '../cli-error.ts'
import type { Shell } from '../shell.ts'

/** The request from the command line, a file or the standard input; without any it is empty. */
export async function readRequest(shell: Shell, argument: string | undefined): Promise<object> {
  if (argument === undefined) return {}
  const { place, json } = await readJson(shell, argument)
  let value: unknown
  try {
    // An empty input is an empty request, so that `portolan call … < /dev/null` works.
    value = JSON.parse(json.trim() === '' ? '{}' : json, exactNumber as never)
  } catch (error) {
    throw usageError(`${place} is not JSON: ${(error as Error).message}.`)
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value) || raw.isRawJSON(value))
    throw usageError(`${place} must be a JSON object, such as '{"domain":"demo"}'.`)
  return value
}

async function readJson(shell: Shell, argument: string): Promise<{ place: string; json: string }> {
  if (argument === '-') return { place: 'The standard input', json: await text(shell.stdin) }
  if (!argument.startsWith('@')) return { place: 'The request', json: argument }
  const path = resolve(shell.cwd, argument.slice(1))
  const json = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw usageError(`The file ${path} cannot be read (${error.code}).`)
  })
  return { place: path, json }
}

// A number is sent as it was written: the service shall judge 9007199254740993, not a rounded one.
const exactNumber = (_key: string, value: unknown, context: { source?: string }): unknown =>
  typeof value === 'number' && context.source !== undefined ? raw.rawJSON(context.source) : value

// TypeScript does not know these of ES2026 yet.
const raw = JSON as unknown as {
  rawJSON(text: string): unknown
  isRawJSON(value: unknown): boolean
}
