// Texts and numbers as a whole: digits inside of one are not an integer of their own.
const tokens = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?/g
const integer = /^-?\d{16,}$/
const longInteger = /[:,[]\s*-?\d{16,}/

/**
 * Parses JSON without loss: an integer that a number cannot hold becomes a bigint. Without the
 * `source` of a reviver, which Node 20 and older browsers do not have.
 */
export function parseJson(text: string): unknown {
  if (!longInteger.test(text)) return JSON.parse(text)
  const mark = `${crypto.randomUUID()} `
  const marked = text.replace(tokens, (token) =>
    integer.test(token) && !Number.isSafeInteger(Number(token)) ? `"${mark}${token}"` : token,
  )
  return JSON.parse(marked, (_, value: unknown) =>
    typeof value === 'string' && value.startsWith(mark) ? BigInt(value.slice(mark.length)) : value,
  )
}
