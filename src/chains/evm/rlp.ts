/** What RLP encodes: bytes, and lists of such. */
export type RlpItem = Uint8Array | readonly RlpItem[]

/** The encoding of an item. */
export function encodeRlp(item: RlpItem): Buffer {
  if (!isBytes(item)) {
    const parts = item.map(encodeRlp)
    const size = parts.reduce((sum, part) => sum + part.length, 0)
    return Buffer.concat([prefixOf(size, 0xc0), ...parts])
  }
  if (item.length === 1 && item[0]! < 0x80) return Buffer.from(item)
  return Buffer.concat([prefixOf(item.length, 0x80), item])
}

const isBytes = (item: RlpItem): item is Uint8Array => item instanceof Uint8Array

const empty = Buffer.alloc(0)

/** The shortest bytes of a quantity; none for zero. */
export const quantityBytes = (value: bigint | number): Buffer => {
  if (value === 0 || value === 0n) return empty
  const hex = value.toString(16)
  return Buffer.from(hex.length % 2 ? `0${hex}` : hex, 'hex')
}

function prefixOf(length: number, offset: number): Buffer {
  if (length < 56) return Buffer.of(offset + length)
  const bytes = quantityBytes(length)
  return Buffer.concat([Buffer.of(offset + 55 + bytes.length), bytes])
}
