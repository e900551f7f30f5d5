/** The three credentials of spec 5.1, as header names. */
export const authHeaders = {
  key: 'x-api-key',
  nonce: 'x-api-nonce',
  signature: 'x-api-signature',
} as const

/**
 * What stands before the raw body in the signed text. Nothing is ambiguous: the nonce is digits,
 * the method letters, and the path begins with a slash.
 */
export const signedPrefix = (nonce: string, method: string, path: string): string =>
  `${nonce}${method.toUpperCase()}${path}`

/**
 * Reads a nonce as milliseconds: 13 digits are milliseconds, 16 microseconds, 19 nanoseconds.
 * Undefined for anything else.
 */
export function nonceTime(nonce: string): number | undefined {
  if (!/^(?:\d{13}|\d{16}|\d{19})$/.test(nonce)) return undefined
  return Number(nonce.slice(0, 13))
}
