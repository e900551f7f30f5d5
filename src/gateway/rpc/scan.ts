// Walks over JSON text without building values. What it passes over is checked where it is used: the
// walk itself only finds where values end, in time linear in the text and without recursion.

import { closingQuote } from '../../lib/json/walk.ts'

const quote = 0x22
const openArray = 0x5b
const closeArray = 0x5d
const openObject = 0x7b
const closeObject = 0x7d

/** The next position that holds no white space. */
export function skipSpace(text: string, from: number): number {
  let at = from
  for (;;) {
    const char = text.charCodeAt(at)
    if (char !== 0x20 && char !== 0x0a && char !== 0x0d && char !== 0x09) return at
    at++
  }
}

/** The position after the string that begins here; -1 when it does not end. */
export function skipString(text: string, from: number): number {
  const end = closingQuote(text, from)
  return end < 0 ? -1 : end + 1
}

/** The position after the value that begins here; -1 when there is none, it does not end or is too deep. */
export function skipValue(text: string, from: number, maxDepth: number): number {
  const first = text.charCodeAt(from)
  if (first === quote) return skipString(text, from)
  if (first === openArray || first === openObject) return skipNested(text, from, maxDepth)
  let at = from
  while (at < text.length && !isDelimiter(text.charCodeAt(at))) at++
  return at > from ? at : -1
}

function skipNested(text: string, from: number, maxDepth: number): number {
  let depth = 0
  for (let at = from; at < text.length; at++) {
    const char = text.charCodeAt(at)
    if (char === quote) {
      const end = skipString(text, at)
      if (end < 0) return -1
      at = end - 1
    } else if (char === openArray || char === openObject) {
      if (++depth > maxDepth) return -1
    } else if ((char === closeArray || char === closeObject) && --depth === 0) return at + 1
  }
  return -1
}

const isDelimiter = (char: number): boolean =>
  char === 0x2c ||
  char === closeArray ||
  char === closeObject ||
  char === 0x3a ||
  char === quote ||
  char <= 0x20

/** Told of one member: the text of its name with the quotes, and where its value is. */
export type OnMember = (name: string, from: number, to: number) => boolean

/**
 * Passes over the object that begins here and tells of its members until told to stop (false);
 * returns the position after it, -1 when it is malformed or nested deeper than allowed.
 */
export function scanObject(
  text: string,
  from: number,
  onMember: OnMember,
  maxDepth: number = Number.POSITIVE_INFINITY,
): number {
  let at = skipSpace(text, from + 1)
  if (text.charCodeAt(at) === closeObject) return at + 1
  for (;;) {
    if (text.charCodeAt(at) !== quote) return -1
    const nameEnd = skipString(text, at)
    if (nameEnd < 0) return -1
    const name = text.slice(at, nameEnd)
    at = skipSpace(text, nameEnd)
    if (text.charCodeAt(at) !== 0x3a) return -1
    at = skipSpace(text, at + 1)
    const end = skipValue(text, at, maxDepth - 1)
    if (end < 0 || !onMember(name, at, end)) return -1
    at = skipSpace(text, end)
    const next = text.charCodeAt(at)
    if (next === closeObject) return at + 1
    if (next !== 0x2c) return -1
    at = skipSpace(text, at + 1)
  }
}

/**
 * Passes over the array that begins here and tells where its elements are until told to stop
 * (false); returns the position after it, -1 when it is malformed.
 */
export function scanArray(
  text: string,
  from: number,
  onElement: (from: number, to: number) => boolean,
  maxDepth: number = Number.POSITIVE_INFINITY,
): number {
  let at = skipSpace(text, from + 1)
  if (text.charCodeAt(at) === closeArray) return at + 1
  for (;;) {
    const end = skipValue(text, at, maxDepth - 1)
    if (end < 0 || !onElement(at, end)) return -1
    at = skipSpace(text, end)
    const next = text.charCodeAt(at)
    if (next === closeArray) return at + 1
    if (next !== 0x2c) return -1
    at = skipSpace(text, at + 1)
  }
}

/** Whether an object contains a duplicate member, at any depth; the text must be JSON. */
export function hasDuplicateKeys(text: string): boolean {
  const levels: (Set<string> | undefined)[] = []
  for (let at = 0; at < text.length; at++) {
    const char = text.charCodeAt(at)
    if (char === quote) {
      const end = skipString(text, at)
      const level = levels.at(-1)
      if (level && text.charCodeAt(skipSpace(text, end)) === 0x3a) {
        const name = readString(text.slice(at, end))
        if (name === undefined || level.has(name)) return true
        level.add(name)
      }
      at = end - 1
    } else if (char === openObject) levels.push(new Set())
    else if (char === openArray) levels.push(undefined)
    else if (char === closeArray || char === closeObject) levels.pop()
  }
  return false
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: JSON forbids them in strings
const plainString = /^"[^"\\\x00-\x1f]*"$/

/** The string that a JSON text stands for; undefined when it is none. */
export function readString(text: string): string | undefined {
  if (plainString.test(text)) return text.slice(1, -1)
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'string' ? value : undefined
  } catch {
    return undefined
  }
}
