import type { RawJson } from '../chains/upstream/pool-types.ts'

/** A text that is kept outside of the heap. */
export type Kept = {
  key: string
  /** Where it is; undefined before it has got its place. */
  chunk: Chunk | undefined
  at: number
  length: number
  /** Whether anybody has read it since it got its place. */
  isWanted: boolean
  /** The text itself, while there is room for those that are wanted. */
  text: RawJson | undefined
}

/** A stretch of bytes that is filled once and given up as a whole. */
type Chunk = {
  bytes: Buffer
  used: number
  /** What its texts cost in the heap. */
  overhead: number
  kept: Kept[]
}

/** Texts in the order in which they came, bounded in bytes; the oldest go first. */
export type ByteLog<kept extends Kept> = {
  /** Gives a text its place; false when it is too long to be kept at all. */
  put(one: kept, text: RawJson): boolean
  read(one: kept): RawJson
  clear(): void
  bytes(): number
}

const largestChunk = 1024 * 1024

/** What a text costs beside its bytes: the key and value objects and their places in lists. */
const overheadBytes = 250

/**
 * Makes a log of at most that many bytes. In the heap, each text would be copied and marked by the
 * collections: that took a fifth of the time of a gateway that keeps what passes through, and its
 * longest pauses.
 */
export function createByteLog<kept extends Kept>(options: {
  maxBytes: number
  /** Whether a text of a chunk that is given up is of any use. */
  isKept(one: kept): boolean
  onGone(one: kept): void
}): ByteLog<kept> {
  const { maxBytes, isKept, onGone } = options
  // One giant answer must not push out everything else.
  const largestCost = Math.max(1, Math.floor(maxBytes / 16))
  const chunkBytes = Math.min(largestChunk, largestCost)
  const chunks: Chunk[] = []
  let spare: Buffer | undefined
  let bytes = 0

  const costOf = (key: string, length: number) => length + key.length + overheadBytes

  const write = (chunk: Chunk, one: kept, text: RawJson) => {
    const overhead = costOf(one.key, 0)
    one.chunk = chunk
    one.at = chunk.used
    one.length = text.length
    one.isWanted = false
    one.text = undefined
    chunk.bytes.write(text, chunk.used, 'latin1')
    chunk.used += text.length
    chunk.overhead += overhead
    chunk.kept.push(one)
    bytes += overhead
  }

  /** Gives up the oldest chunk. Of what was wanted since it came there, some is saved. */
  const giveUp = (saved: { one: kept; text: RawJson }[], room: number): number => {
    const chunk = chunks.shift() as Chunk
    bytes -= chunk.bytes.length + chunk.overhead
    if (chunk.bytes.length === chunkBytes) spare = chunk.bytes
    let left = room
    for (const one of chunk.kept as kept[]) {
      if (one.chunk !== chunk || !isKept(one)) continue
      const cost = costOf(one.key, one.length)
      if (one.isWanted && cost <= left) {
        left -= cost
        saved.push({ one, text: decode(one) })
      } else onGone(one)
    }
    return left
  }

  /** Opens a chunk for something of this cost; leaves room for what comes with it and what is read. */
  const open = (cost: number): Chunk => {
    const size = Math.max(cost, chunkBytes)
    const saved: { one: kept; text: RawJson }[] = []
    let room = cost > chunkBytes ? 0 : (chunkBytes - cost) >> 1
    while (chunks.length > 0 && bytes + size + 2 * chunkBytes > maxBytes) room = giveUp(saved, room)
    const reused = size === chunkBytes ? spare : undefined
    if (reused) spare = undefined
    const chunk = { bytes: reused ?? Buffer.allocUnsafeSlow(size), used: 0, overhead: 0, kept: [] }
    bytes += size
    chunks.push(chunk)
    for (const { one, text } of saved) write(chunk, one, text)
    return chunk
  }

  const decode = ({ chunk, at, length, text }: kept): RawJson =>
    text ?? chunk?.bytes.toString('latin1', at, at + length) ?? ''

  const read = (one: kept): RawJson => {
    const text = decode(one)
    one.isWanted = true
    // The chunk that is being filled may still cost as much again in the heap.
    if (one.chunk && one.text === undefined && bytes + text.length + chunkBytes <= maxBytes) {
      one.text = text
      one.chunk.overhead += text.length
      bytes += text.length
    }
    return text
  }

  return {
    put(one, text) {
      const cost = costOf(one.key, text.length)
      if (cost > largestCost) return false
      const last = chunks.at(-1)
      const isRoom =
        last !== undefined &&
        last.used + text.length <= last.bytes.length &&
        Math.max(last.overhead + cost, last.used + cost) <= chunkBytes
      write(isRoom ? last : open(cost), one, text)
      return true
    },
    read,
    clear() {
      chunks.length = 0
      bytes = 0
    },
    bytes: () => bytes,
  }
}
