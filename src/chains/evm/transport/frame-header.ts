/** The length of the header of a WebSocket frame (RFC 6455, 5.2), computed from the bytes of it that are there. */
export function headerSizeOf(header: Buffer, known: number): number {
  if (known < 2) return 2
  const length = header[1]! & 0x7f
  const mask = header[1]! >= 0x80 ? 4 : 0
  return (length === 127 ? 10 : length === 126 ? 4 : 2) + mask
}

/** The length of the payload after a whole header. */
export function payloadLengthOf(header: Buffer): number {
  const length = header[1]! & 0x7f
  if (length < 126) return length
  return length === 126 ? header.readUInt16BE(2) : Number(header.readBigUInt64BE(2))
}
