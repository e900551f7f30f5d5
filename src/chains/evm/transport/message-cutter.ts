// A reader of WebSocket frames in front of that of `ws`. Its gain is not time: `ws` knows only `maxPayload`, which ends the
// connection and fails every call under way (`pool/large-replies.test.ts`). Frames below the limit pass as they are.

import { headerSizeOf, payloadLengthOf } from './frame-header.ts'

/** Takes messages over a limit out of the bytes that a WebSocket server sends. */
export type MessageCutter = (chunk: Buffer) => readonly Buffer[]

/** The beginning and the end of a message that was taken out. */
export type CutMessage = { head: Buffer; tail: Buffer }

const headBytes = 128
const tailBytes = 64
const longestHeader = 14
// Ends the fragments of a message that were passed on before it exceeded the limit.
const emptyLastFragment = Buffer.of(0x80, 0)
const nothing = Buffer.alloc(0)

/**
 * Makes a filter for the bytes of one connection. The `ws` package ends the connection when a message
 * exceeds its limit, and with it all calls under way. Here such a message is read and dropped, in constant
 * memory; the caller gets its beginning and end, which is where nodes write the id. `onEndless` is called
 * when more than `maxDropBytes` of one message were dropped; the end is not known then.
 */
export function createMessageCutter(options: {
  maxBytes: number
  maxDropBytes: number
  onCut(message: CutMessage): void
  onEndless(message: CutMessage): void
}): MessageCutter {
  const { maxBytes, maxDropBytes, onCut, onEndless } = options
  const header = Buffer.alloc(longestHeader)
  let headerLength = 0
  /** Bytes of the payload of the current frame that are still to come. */
  let left = 0
  let isData = false
  let isFinal = false
  let isDropped = false
  /** Bytes of the current message in earlier frames. */
  let size = 0
  let dropped = 0
  const head = Buffer.alloc(headBytes)
  let headLength = 0
  let tail = nothing

  const ends = (): CutMessage => ({
    head: Buffer.from(head.subarray(0, headLength)),
    tail: Buffer.from(tail),
  })

  const endFrame = () => {
    if (!isData || !isFinal) return
    if (isDropped) onCut(ends())
    size = dropped = headLength = 0
    isDropped = false
    tail = nothing
  }

  const keepEnds = (payload: Buffer) => {
    if (headLength < headBytes) headLength += payload.copy(head, headLength)
    if (!isDropped) return
    dropped += payload.length
    const joined = payload.length < tailBytes ? Buffer.concat([tail, payload]) : payload
    tail = Buffer.from(joined.subarray(-tailBytes))
    if (dropped > maxDropBytes) onEndless(ends())
  }

  /** Reads a whole header. Returns whether its message exceeds the limit with this frame. */
  const openFrame = (): boolean => {
    isData = header[0]! % 16 < 8
    isFinal = header[0]! >= 0x80
    left = payloadLengthOf(header)
    if (!isData || isDropped) return false
    size += left
    isDropped = size > maxBytes
    return isDropped
  }

  return (chunk) => {
    // Nearly all chunks hold whole messages that fit.
    let at = left + headerLength + size === 0 ? endOfWhole(chunk, maxBytes) : 0
    if (at === chunk.length) return [chunk]
    const out: Buffer[] = []
    // Where the bytes begin that are passed on unchanged.
    let from = 0
    const flush = (to: number) => {
      if (to > from) out.push(chunk.subarray(from, to))
    }
    while (at < chunk.length) {
      if (left > 0) {
        const end = Math.min(chunk.length, at + left)
        const isGone = isData && isDropped
        // The ends matter only of messages in several frames, or dropped ones.
        if (isData && (isGone || !isFinal)) keepEnds(chunk.subarray(at, end))
        left -= end - at
        at = end
        if (isGone) from = at
        if (left === 0) endFrame()
        continue
      }
      const start = at
      const isHeld = headerLength > 0
      while (at < chunk.length && headerLength < headerSizeOf(header, headerLength))
        header[headerLength++] = chunk[at++]!
      if (headerLength < headerSizeOf(header, headerLength)) {
        // The rest of the header comes with the next chunk.
        flush(start)
        return out
      }
      const isContinuation = header[0]! % 16 === 0
      const isNew = openFrame()
      const isGone = isData && isDropped
      if (isGone || isHeld) {
        if (!isHeld) flush(start)
        if (!isGone) out.push(Buffer.from(header.subarray(0, headerLength)))
        else if (isNew && isContinuation) out.push(emptyLastFragment)
        from = at
      }
      headerLength = 0
      if (left === 0) endFrame()
    }
    flush(at)
    return out
  }
}

/** Where the messages of one frame each end with which a chunk begins, and which the limit allows. */
function endOfWhole(chunk: Buffer, maxBytes: number): number {
  let whole = 0
  while (whole + 4 <= chunk.length && chunk[whole]! >= 0x80) {
    const short = chunk[whole + 1]!
    // Longer ones, and those with a mask, take the general way.
    if (short > 126) return whole
    const length = short < 126 ? short : chunk[whole + 2]! * 256 + chunk[whole + 3]!
    const end = whole + (short < 126 ? 2 : 4) + length
    if (end > chunk.length || length > maxBytes) return whole
    whole = end
  }
  return whole
}

const idInHead =
  /^\s{0,9}\{\s{0,9}(?:"jsonrpc"\s{0,9}:\s{0,9}"2\.0"\s{0,9},\s{0,9})?"id"\s{0,9}:\s{0,9}(\d{1,15})\s{0,9},/
const idInTail = /"id"\s{0,9}:\s{0,9}(\d{1,15})\s{0,9}\}\s{0,9}$/

/** The id of a JSON-RPC reply of which only both ends are known; undefined when it is in neither. */
export function idOfCut({ head, tail }: CutMessage): number | undefined {
  const id = idInHead.exec(head.toString('latin1')) ?? idInTail.exec(tail.toString('latin1'))
  return id ? Number(id[1]) : undefined
}
