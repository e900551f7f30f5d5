import { stripVTControlCharacters } from 'node:util'

const widthOf = (text: string) => stripVTControlCharacters(text).length

/**
 * Joins pieces into lines of at most so many columns. A piece is never broken, because half of an address or of a path cannot be
 * copied: one that is longer has a line of its own. Colours take no room.
 */
export function fitLines(pieces: readonly string[], columns: number, separator = ' '): string[] {
  const lines: string[] = []
  for (const piece of pieces) {
    const last = lines.at(-1)
    if (last !== undefined && widthOf(last) + separator.length + widthOf(piece) <= columns)
      lines[lines.length - 1] = `${last}${separator}${piece}`
    else lines.push(piece)
  }
  return lines
}
