import { skipSpace, skipString, skipValue } from './json-skip.ts'
import type { RawJson } from './pool-types.ts'

/**
 * The members of an object, with an empty list in the place of every object and list: the header of a
 * block without its transactions, which may be a thousand times as long. Undefined for all else.
 */
export function readFields(text: RawJson): Record<string, unknown> | undefined {
  let at = skipSpace(text, 0)
  if (text.charCodeAt(at) !== 0x7b) return undefined
  const fields: Record<string, unknown> = Object.create(null)
  at = skipSpace(text, at + 1)
  while (text.charCodeAt(at) !== 0x7d) {
    const keyEnd = skipString(text, at)
    if (keyEnd < 0) return undefined
    const from = skipSpace(text, skipSpace(text, keyEnd) + 1)
    const to = skipValue(text, from)
    if (to < 0) return undefined
    fields[stringOf(text, at, keyEnd)] = partOf(text, from, to)
    at = skipSpace(text, to)
    if (text.charCodeAt(at) === 0x2c) at = skipSpace(text, at + 1)
    else if (text.charCodeAt(at) !== 0x7d) return undefined
  }
  return fields
}

const nothing: readonly unknown[] = []

function partOf(text: RawJson, from: number, to: number): unknown {
  const first = text.charCodeAt(from)
  if (first === 0x22) return stringOf(text, from, to)
  if (first === 0x7b || first === 0x5b) return nothing
  return JSON.parse(text.slice(from, to))
}

function stringOf(text: RawJson, from: number, to: number): string {
  const inner = text.slice(from + 1, to - 1)
  return inner.includes('\\') ? JSON.parse(text.slice(from, to)) : inner
}
