const quote = 0x22
const backslash = 0x5c

// Deeper than any real answer (a call trace nests 2 levels per frame, 1,024 frames), and far from
// what would need much memory.
const maxDepth = 10_000

/** The next character that is no white space. */
export function skipSpace(text: string, from: number): number {
  let at = from
  for (;;) {
    const char = text.charCodeAt(at)
    if (char === 0x20 || char === 0x0a || char === 0x0d || char === 0x09) at++
    else return at
  }
}

/**
 * Where the JSON value that begins at `from` ends; -1 when it is not valid JSON. Nothing is built:
 * the text goes on to the client as it is, and only must be whole.
 */
export function skipValue(text: string, from: number): number {
  const first = text.charCodeAt(from)
  if (first !== 0x7b && first !== 0x5b) return skipScalar(text, from, first)
  // One bit of knowledge per level: whether it is an object.
  const isObject: boolean[] = []
  let at = from
  for (;;) {
    const char = text.charCodeAt(at)
    let isOpen = false
    if (char === 0x7b || char === 0x5b) {
      if (isObject.length === maxDepth) return -1
      isObject.push(char === 0x7b)
      at = skipSpace(text, at + 1)
      isOpen = text.charCodeAt(at) !== (char === 0x7b ? 0x7d : 0x5d)
      if (isOpen && char === 0x7b) at = skipKey(text, at)
      else if (!isOpen) {
        isObject.pop()
        at++
      }
    } else at = skipScalar(text, at, char)
    if (at < 0) return -1
    if (isOpen) continue
    for (;;) {
      const level = isObject[isObject.length - 1]
      if (level === undefined) return at
      at = skipSpace(text, at)
      const next = text.charCodeAt(at)
      if (next === 0x2c) {
        at = skipSpace(text, at + 1)
        if (level) at = skipKey(text, at)
        if (at < 0) return -1
        break
      }
      if (next !== (level ? 0x7d : 0x5d)) return -1
      isObject.pop()
      at++
    }
  }
}

/** Where the string that begins at `from` ends, behind its closing quote; -1 when it is none. */
export function skipString(text: string, from: number): number {
  if (text.charCodeAt(from) !== quote) return -1
  const length = text.length
  for (let at = from + 1; at < length; at++) {
    const char = text.charCodeAt(at)
    if (char === quote) return at + 1
    if (char < 0x20) return -1
    if (char === backslash) {
      at++
      const escaped = text.charCodeAt(at)
      if (escaped === 0x75) {
        if (!/^[0-9a-f]{4}$/i.test(text.slice(at + 1, at + 5))) return -1
        at += 4
      } else if (!isEscape(escaped)) return -1
    }
  }
  return -1
}

function skipKey(text: string, from: number): number {
  const end = skipString(text, from)
  if (end < 0) return -1
  const colon = skipSpace(text, end)
  return text.charCodeAt(colon) === 0x3a ? skipSpace(text, colon + 1) : -1
}

function skipScalar(text: string, from: number, char: number): number {
  if (char === quote) return skipString(text, from)
  if (char === 0x74) return text.startsWith('true', from) ? from + 4 : -1
  if (char === 0x66) return text.startsWith('false', from) ? from + 5 : -1
  if (char === 0x6e) return text.startsWith('null', from) ? from + 4 : -1
  return skipNumber(text, from)
}

function skipNumber(text: string, from: number): number {
  let at = text.charCodeAt(from) === 0x2d ? from + 1 : from
  if (text.charCodeAt(at) === 0x30) at++
  else {
    at = skipDigits(text, at)
    if (at < 0) return -1
  }
  if (text.charCodeAt(at) === 0x2e) {
    at = skipDigits(text, at + 1)
    if (at < 0) return -1
  }
  const exponent = text.charCodeAt(at) | 0x20
  if (exponent !== 0x65) return at
  const sign = text.charCodeAt(at + 1)
  return skipDigits(text, sign === 0x2b || sign === 0x2d ? at + 2 : at + 1)
}

function skipDigits(text: string, from: number): number {
  let at = from
  for (let char = text.charCodeAt(at); char >= 0x30 && char <= 0x39; char = text.charCodeAt(at))
    at++
  return at > from ? at : -1
}

// The characters of " \ / b f n r t.
const isEscape = (char: number) =>
  char === quote ||
  char === backslash ||
  char === 0x2f ||
  char === 0x62 ||
  char === 0x66 ||
  char === 0x6e ||
  char === 0x72 ||
  char === 0x74
