// Texts of tokens, which strangers choose. The result can be stored, and shown in a line of other text.

/** Bounds of what tokens say: names and symbols, and the decimals of a uint8. */
const longestText = 1_000
const mostDecimals = 255

/** A text without what PostgreSQL cannot store, and what would rewrite the line it is shown in. */
export const cleanText = (text: string): string =>
  text
    .replace(/[\p{Cc}\p{Bidi_Control}]/gu, '')
    .toWellFormed()
    .trim()

/** A name or a symbol; null where there is none, and where it is longer than is kept. */
export function readTokenText(text: string | null | undefined): string | null {
  if (!text || text.length > longestText) return null
  return cleanText(text) || null
}

/** Decimals; null for what is none. */
export const readDecimals = (decimals: number | null | undefined): number | null =>
  Number.isInteger(decimals) && decimals! >= 0 && decimals! <= mostDecimals ? decimals! : null
