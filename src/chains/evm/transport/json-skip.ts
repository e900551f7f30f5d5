const quote = 0x22
const backslash = 0x5c

// Deeper than any real answer (a call trace nests 2 levels per frame, 1,024 frames), and far from
// what would need much memory.
const maxDepth = 10_000

/** The next byte that is no white space. */
export function skipSpace(text: Uint8Array, from: number): number {
  let at = from
  for (;;) {
    const char = text[at]
    if (char === 0x20 || char === 0x0a || char === 0x0d || char === 0x09) at++
    else return at
  }
}

/**
 * Where the JSON value that begins at `from` ends; -1 when it is not valid JSON. Nothing is built:
 * the text goes on to the client as it is, and only must be whole. On bytes, because to look at the
 * characters of a string one by one costs several times as much.
 */
export function skipValue(text: Uint8Array, from: number): number {
  const first = text[from] as number
  if (first !== 0x7b && first !== 0x5b) return skipScalar(text, from, first)
  // One bit of knowledge per level: whether it is an object.
  const isObject: boolean[] = []
  let at = from
  for (;;) {
    const char = text[at] as number
    let isOpen = false
    if (char === 0x7b || char === 0x5b) {
      if (isObject.length === maxDepth) return -1
      isObject.push(char === 0x7b)
      at = skipSpace(text, at + 1)
      isOpen = (text[at] as number) !== (char === 0x7b ? 0x7d : 0x5d)
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
      const next = text[at] as number
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
export function skipString(text: Uint8Array, from: number): number {
  if ((text[from] as number) !== quote) return -1
  const length = text.length
  for (let at = from + 1; at < length; at++) {
    const char = text[at] as number
    if (char === quote) return at + 1
    if (char < 0x20) return -1
    if (char === backslash) {
      at++
      const escaped = text[at] as number
      if (escaped === 0x75) {
        for (let digit = at + 1; digit <= at + 4; digit++)
          if (!isHexDigit(text[digit] as number)) return -1
        at += 4
      } else if (!isEscape(escaped)) return -1
    }
  }
  return -1
}

function skipKey(text: Uint8Array, from: number): number {
  const end = skipString(text, from)
  if (end < 0) return -1
  const colon = skipSpace(text, end)
  return (text[colon] as number) === 0x3a ? skipSpace(text, colon + 1) : -1
}

function skipScalar(text: Uint8Array, from: number, char: number): number {
  if (char === quote) return skipString(text, from)
  if (char === 0x74) return startsWith(text, from, word.true) ? from + 4 : -1
  if (char === 0x66) return startsWith(text, from, word.false) ? from + 5 : -1
  if (char === 0x6e) return startsWith(text, from, word.null) ? from + 4 : -1
  return skipNumber(text, from)
}

const word = {
  true: Buffer.from('true'),
  false: Buffer.from('false'),
  null: Buffer.from('null'),
}

/** Whether these bytes stand there. */
export function startsWith(text: Uint8Array, from: number, bytes: Uint8Array): boolean {
  for (let index = 0; index < bytes.length; index++)
    if (text[from + index] !== bytes[index]) return false
  return true
}

function skipNumber(text: Uint8Array, from: number): number {
  let at = (text[from] as number) === 0x2d ? from + 1 : from
  if ((text[at] as number) === 0x30) at++
  else {
    at = skipDigits(text, at)
    if (at < 0) return -1
  }
  if ((text[at] as number) === 0x2e) {
    at = skipDigits(text, at + 1)
    if (at < 0) return -1
  }
  const exponent = (text[at] as number) | 0x20
  if (exponent !== 0x65) return at
  const sign = text[at + 1] as number
  return skipDigits(text, sign === 0x2b || sign === 0x2d ? at + 2 : at + 1)
}

function skipDigits(text: Uint8Array, from: number): number {
  let at = from
  for (let char = text[at] as number; char >= 0x30 && char <= 0x39; char = text[at] as number) at++
  return at > from ? at : -1
}

const isHexDigit = (char: number) =>
  (char >= 0x30 && char <= 0x39) || ((char | 0x20) >= 0x61 && (char | 0x20) <= 0x66)

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
