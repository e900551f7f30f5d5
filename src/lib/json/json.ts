// JSON with strict rules and exact numbers. Pure functions that use nothing else; linear time in the size of the
// text, with a bound on depth.
//
// Measured price (Node 26, CPU time): a body of 107 bytes takes 1.9 µs instead of 0.6 µs of `JSON.parse` alone, one of 100 addresses 23 µs
// instead of 9. `JSON.parse` alone accepts duplicate keys and any depth.
//
// `findStructureProblem` and `countNames` walk over the text themselves, with `closingQuote` of the scanner. One walk for both, which
// calls back for each bracket, comma, colon and string, takes 15 % longer for the problem of a body of 246 bytes (0.79 µs) and 12 % for
// one of 880 KB (8.4 ms), and 29 % and 10 % longer for the names.

import { closingQuote } from './scan.ts'

/** Why a text is not JSON that we take; `field` is the path where it went wrong. */
export type JsonProblem = { field: string; detail: string }

/** How deep the body of an operation may be nested. */
export const maxDepth = 16

/** What `parseJson` answers. */
export type JsonResult = { ok: true; value: unknown } | { ok: false; problem: JsonProblem }

/**
 * Parses JSON from outside, more strictly than `JSON.parse`: it refuses duplicate keys (two readers
 * could disagree about which one counts), deep nesting, NUL (PostgreSQL cannot store it) and lone
 * surrogates (not text at all).
 */
export function parseJson(bytes: Uint8Array, depth: number = maxDepth): JsonResult {
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return refuse('', 'The body is not valid UTF-8.')
  }
  const structure = findStructureProblem(text, depth)
  if (structure) return { ok: false, problem: structure }
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return refuse('', 'The body is not valid JSON.')
  }
  // The escape is the only way in: raw control characters are no JSON, raw surrogates no UTF-8.
  if (/\\u(?:0000|d[89a-f])/i.test(text)) {
    const problem = findTextProblem(value, '')
    if (problem) return { ok: false, problem }
  }
  return { ok: true, value }
}

/**
 * Whether an object in a valid JSON text has a key twice, at any depth. `value` is what the text was parsed to: it has
 * only one of two equal keys, so that the counts differ. Names with escapes are decoded and compared.
 */
export const hasDuplicateKeys = (text: string, value: unknown): boolean =>
  text.includes('\\')
    ? findStructureProblem(text, Number.POSITIVE_INFINITY) !== undefined
    : countNames(text) !== countKeys(value)

/** The names of members in a text: each one is followed by a colon. */
function countNames(text: string): number {
  const { length } = text
  let count = 0
  for (let at = 0; at < length; at++) {
    const char = text.charCodeAt(at)
    if (char === 0x3a) count++
    else if (char === 0x22) {
      at = closingQuote(text, at)
      if (at < 0) break
    }
  }
  return count
}

function countKeys(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  let count = 0
  if (Array.isArray(value)) {
    for (const item of value) count += countKeys(item)
    return count
  }
  const items = Object.values(value)
  count = items.length
  for (const item of items) count += countKeys(item)
  return count
}

/** The path of a value inside a body, as errors name it: `addresses[3]`, `token_payload.erc20`. */
export function joinPath(parent: string, key: string | number): string {
  if (typeof key === 'number') return `${parent}[${key}]`
  return parent ? `${parent}.${nameOf(key)}` : nameOf(key)
}

// Names of the request appear in error messages.
const longestName = 100

/** An empty name must be seen, and one of a megabyte must not come back in the answer. */
function nameOf(key: string): string {
  if (key === '') return '""'
  return key.length > longestName ? `${key.slice(0, longestName).toWellFormed()}…` : key
}

const refuse = (field: string, detail: string): JsonResult => ({
  ok: false,
  problem: { field, detail },
})

type Level = { keys: Set<string> | undefined; key: string; index: number }

/** Walks over the text without building values, so that a hostile depth costs no stack. */
function findStructureProblem(text: string, maxDepth: number): JsonProblem | undefined {
  const levels: Level[] = []
  const path = () =>
    levels.reduce((at, { keys, key, index }) => joinPath(at, keys ? key : index), '')
  for (let at = 0; at < text.length; at++) {
    const char = text.charCodeAt(at)
    if (char === 0x22) {
      const end = closingQuote(text, at)
      if (end < 0) return undefined
      const level = levels.at(-1)
      const next = nextVisible(text, end + 1)
      if (level?.keys && text.charCodeAt(next) === 0x3a) {
        const key = decodeKey(text.slice(at, end + 1))
        level.key = key
        if (level.keys.has(key)) return { field: path(), detail: 'Duplicate key.' }
        level.keys.add(key)
      }
      at = end
    } else if (char === 0x7b || char === 0x5b) {
      if (levels.length >= maxDepth)
        return { field: path(), detail: `Nested deeper than ${maxDepth} levels.` }
      levels.push({ keys: char === 0x7b ? new Set() : undefined, key: '', index: 0 })
    } else if (char === 0x7d || char === 0x5d) levels.pop()
    else if (char === 0x2c) {
      const level = levels.at(-1)
      if (level) level.index++
    }
  }
  return undefined
}

function nextVisible(text: string, from: number): number {
  let at = from
  while (at < text.length && text.charCodeAt(at) <= 0x20) at++
  return at
}

function decodeKey(quoted: string): string {
  if (!quoted.includes('\\')) return quoted.slice(1, -1)
  try {
    return JSON.parse(quoted)
  } catch {
    return quoted
  }
}

function findTextProblem(value: unknown, path: string): JsonProblem | undefined {
  if (typeof value === 'string') return textProblem(value, path)
  if (typeof value !== 'object' || value === null) return undefined
  const entries: [string | number, unknown][] = Array.isArray(value)
    ? value.map((item, index) => [index, item])
    : Object.entries(value)
  for (const [key, item] of entries) {
    const problem =
      (typeof key === 'string' && textProblem(key, joinPath(path, clean(key)))) ||
      findTextProblem(item, joinPath(path, typeof key === 'string' ? clean(key) : key))
    if (problem) return problem
  }
  return undefined
}

function textProblem(text: string, field: string): JsonProblem | undefined {
  if (text.includes('\0')) return { field, detail: 'Contains the character NUL.' }
  if (!text.isWellFormed()) return { field, detail: 'Contains half of a surrogate pair.' }
  return undefined
}

const clean = (key: string) => key.toWellFormed().replaceAll('\0', '\uFFFD')
