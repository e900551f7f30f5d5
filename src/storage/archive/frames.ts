import { ArchiveError } from './format.ts'

/** One piece of an archive; `raw` is all of it as it was written. */
export type Frame = { type: number; payload: Buffer; raw: Buffer }

const headLength = 5
// A damaged length must not make the import wait for gigabytes in memory.
const longestPayload = 64 * 1024 * 1024

/** A frame as bytes: type, length, payload. */
export const encodeFrame = (type: number, payload: Buffer): Buffer => {
  const head = Buffer.allocUnsafe(headLength)
  head.writeUInt8(type, 0)
  head.writeUInt32BE(payload.length, 1)
  return Buffer.concat([head, payload])
}

/** A frame whose payload is JSON. */
export const encodeJson = (type: number, value: object): Buffer =>
  encodeFrame(type, Buffer.from(JSON.stringify(value)))

const lengthOf = (buffered: Buffer): number => {
  const length = buffered.readUInt32BE(1)
  if (length > longestPayload)
    throw new ArchiveError('The archive is damaged: a frame is too long.')
  return headLength + length
}

/** Cuts a stream of bytes into frames, holding no more than one frame and one chunk. */
export const readFrames = async function* (source: AsyncIterable<Buffer>): AsyncGenerator<Frame> {
  let buffered: Buffer = Buffer.alloc(0)
  for await (const chunk of source) {
    // Chunks are small against a frame at the most, so that joining them stays cheap.
    buffered = buffered.length === 0 ? chunk : Buffer.concat([buffered, chunk])
    while (buffered.length >= headLength) {
      const length = lengthOf(buffered)
      if (buffered.length < length) break
      const raw = buffered.subarray(0, length)
      yield { type: raw.readUInt8(0), payload: raw.subarray(headLength), raw }
      buffered = buffered.subarray(length)
    }
  }
  if (buffered.length > 0)
    throw new ArchiveError('The archive is cut off in the middle of a frame.')
}
