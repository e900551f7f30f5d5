/** A frame of a WebSocket server. */
export type Frame = { opcode: number; isFinal: boolean; payload: Buffer }

/** A frame as a server sends it, with any of the allowed lengths of its header. */
export const writeFrame = ({ opcode, isFinal, payload }: Frame): Buffer => {
  const { length } = payload
  const first = (isFinal ? 0x80 : 0) + opcode
  const header = Buffer.alloc(length < 126 ? 2 : length < 65_536 ? 4 : 10)
  header[0] = first
  header[1] = length < 126 ? length : length < 65_536 ? 126 : 127
  if (header.length === 4) header.writeUInt16BE(length, 2)
  if (header.length === 10) header.writeBigUInt64BE(BigInt(length), 2)
  return Buffer.concat([header, payload])
}

/** The frames in bytes that are whole. */
export const readFrames = (bytes: Buffer): Frame[] => {
  const frames: Frame[] = []
  for (let at = 0; at < bytes.length; ) {
    const short = bytes[at + 1]!
    const [from, length] =
      short < 126
        ? [at + 2, short]
        : short === 126
          ? [at + 4, bytes.readUInt16BE(at + 2)]
          : [at + 10, Number(bytes.readBigUInt64BE(at + 2))]
    const payload = bytes.subarray(from, from + length)
    frames.push({ opcode: bytes[at]! % 16, isFinal: bytes[at]! >= 0x80, payload })
    at = from + length
  }
  return frames
}
