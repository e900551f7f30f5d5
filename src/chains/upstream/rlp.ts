/** RLP of a list of byte strings, as far as headers need it. */
export function encodeRlpList(items: Uint8Array[]): Buffer {
  const parts = items.flatMap((item) =>
    item.length === 1 && item[0]! < 0x80 ? [item] : [prefixOf(item.length, 0x80), item],
  )
  const size = parts.reduce((sum, part) => sum + part.length, 0)
  return Buffer.concat([prefixOf(size, 0xc0), ...parts])
}

function prefixOf(length: number, offset: number): Uint8Array {
  if (length < 56) return Uint8Array.of(offset + length)
  const hex = length.toString(16)
  const bytes = Buffer.from(hex.length % 2 ? `0${hex}` : hex, 'hex')
  return Buffer.concat([Uint8Array.of(offset + 55 + bytes.length), bytes])
}
