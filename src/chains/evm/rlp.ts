/** What RLP encodes: bytes as hex digits without `0x`, and lists of such. */
export type RlpItem = string | readonly RlpItem[]

/**
 * The encoding of an item, as hex digits. Texts are joined where bytes would be copied: blocks come as
 * hex, and what is made of them is hashed once.
 */
export function encodeRlp(item: RlpItem): string {
  if (typeof item !== 'string') {
    let joined = ''
    for (const part of item) joined += encodeRlp(part)
    return prefixOf(joined.length / 2, 0xc0) + joined
  }
  if (item.length === 2 && item < '80') return item
  return prefixOf(item.length / 2, 0x80) + item
}

const zero = 0x30

/** The shortest digits of a quantity (`0x…`, nothing for none); empty for zero. */
export const quantityDigits = (quantity: string | null | undefined): string => {
  if (quantity === null || quantity === undefined) return ''
  let from = 2
  while (quantity.charCodeAt(from) === zero) from++
  const digits = quantity.slice(from)
  return digits.length % 2 ? `0${digits}` : digits
}

/** The digits of data (`0x…`, nothing for none). */
export const dataDigits = (data: string | null | undefined): string => data?.slice(2) ?? ''

/** The digits of a number. */
export const numberDigits = (number: number): string =>
  number === 0 ? '' : quantityDigits(`0x${number.toString(16)}`)

const shortPrefixes = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))

function prefixOf(length: number, offset: number): string {
  if (length < 56) return shortPrefixes[offset + length]!
  const digits = numberDigits(length)
  return shortPrefixes[offset + 55 + digits.length / 2] + digits
}
