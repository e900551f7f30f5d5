import type { Path } from './finding.ts'

/** `chains.c.networks.mainnet.upstreams[0].url`, the name of a value in data. */
export const pathKey = (path: Path): string => join(path, (part) => part)

/** The same as a person may see it: whatever the file holds, safe to print and not too long. */
export const pathText = (path: Path): string => join(path, clip)

const join = (path: Path, show: (part: string) => string): string =>
  path.reduce<string>((text, part) => {
    if (typeof part === 'number') return `${text}[${part}]`
    return text === '' ? show(part) : `${text}.${show(part)}`
  }, '')

/** A word in back-quotes, safe to print whatever it holds. */
export const shownWord = (word: string): string => `\`${clip(word)}\``

/** A value as a person would write it, on one line and not too long. */
export const shownValue = (value: unknown): string => {
  if (value === null || value === undefined) return 'empty'
  if (Array.isArray(value)) return value.length === 0 ? 'an empty list' : 'a list'
  if (typeof value === 'object')
    return Object.keys(value).length === 0 ? 'an empty section' : 'a section with keys'
  if (value === '') return 'an empty text'
  return shownWord(String(value))
}

const clip = (text: string): string => {
  const safe = safeText(text).replaceAll('`', "'")
  return safe.length > 60 ? `${safe.slice(0, 57)}...` : safe
}

/** A text without the characters that could rewrite the terminal on which it is shown. */
export const safeText = (text: string): string => text.replace(/[\p{Cc}\p{Cf}\p{Cs}]/gu, '\u{fffd}')
