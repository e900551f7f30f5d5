// Leaves long strings out of WebSocket messages before `ws` puts them together: 100 calls that pass the same 256 KiB make a
// trace of 50 MB, of which some kilobytes are read.

import { headerSizeOf, payloadLengthOf } from './frame-header.ts'
import { createStringCutter } from './string-cutter.ts'

const longestHeader = 14
const headBytes = 128

/**
 * Makes a filter for the bytes of a connection on which every message is JSON text: strings longer than `longest` bytes are
 * replaced as in `createStringCutter`. Messages are written again as they come, in frames of their own, so that nothing waits
 * in memory. `onData` is called when a frame of a message begins, `onEndless` with the beginning of a message of which more
 * than `maxBytes` have come.
 */
export function createFrameShortener(options: {
  longest: number
  maxBytes: number
  onData?: () => void
  onEndless(head: Buffer): void
}): (chunk: Buffer) => readonly Buffer[] {
  const { longest, maxBytes, onData, onEndless } = options
  const header = Buffer.alloc(longestHeader)
  let headerLength = 0
  /** Bytes of the payload of the current frame that are still to come. */
  let left = 0
  let isData = false
  let isFinal = false
  /** Of the next frame that is written: that of the message, then 0 for a continuation. */
  let opcode = 0
  let received = 0
  let head: Buffer = Buffer.alloc(0)
  let cut = createStringCutter(longest)

  const openFrame = (): void => {
    const first = header[0]! % 16
    isData = first < 8
    isFinal = header[0]! >= 0x80
    left = payloadLengthOf(header)
    if (isData) onData?.()
    if (!isData || first === 0) return
    opcode = first
    received = 0
    head = Buffer.alloc(0)
    cut = createStringCutter(longest)
  }

  const shorten = (payload: Buffer, out: Buffer[]): void => {
    received += payload.length
    if (head.length < headBytes)
      head = Buffer.concat([head, payload.subarray(0, headBytes - head.length)])
    if (received > maxBytes) onEndless(head)
    const text = cut(payload)
    const isLast = isFinal && left === 0
    if (text.length === 0 && !isLast) return
    out.push(frameHeader(opcode + (isLast ? 0x80 : 0), text.length))
    if (text.length > 0) out.push(text)
    opcode = 0
  }

  return (chunk) => {
    const out: Buffer[] = []
    let at = 0
    while (at < chunk.length) {
      if (left === 0) {
        while (at < chunk.length && headerLength < headerSizeOf(header, headerLength))
          header[headerLength++] = chunk[at++]!
        if (headerLength < headerSizeOf(header, headerLength)) break
        openFrame()
        if (!isData) out.push(Buffer.from(header.subarray(0, headerLength)))
        headerLength = 0
        // An empty frame may be the last one of a message.
        if (left === 0 && isData) shorten(chunk.subarray(at, at), out)
        continue
      }
      const end = Math.min(chunk.length, at + left)
      left -= end - at
      const payload = chunk.subarray(at, end)
      if (isData) shorten(payload, out)
      else out.push(payload)
      at = end
    }
    return out
  }
}

function frameHeader(first: number, length: number): Buffer {
  if (length < 126) return Buffer.of(first, length)
  const header = Buffer.alloc(length < 65_536 ? 4 : 10)
  header[0] = first
  header[1] = length < 65_536 ? 126 : 127
  if (header.length === 4) header.writeUInt16BE(length, 2)
  else header.writeBigUInt64BE(BigInt(length), 2)
  return header
}
