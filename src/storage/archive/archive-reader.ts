import { createHash } from 'node:crypto'
import { pipeline, type Readable } from 'node:stream'
import { createZstdDecompress } from 'node:zlib'
import { ArchiveError, type End, frameType, type TableEnd, type TableHead } from './format.ts'
import { type Frame, readFrames } from './frames.ts'

/** Hands out an archive's frames in order and checks that it is whole. */
export type ArchiveReader = {
  /** The payload of the first frame. */
  header(): Promise<Buffer>
  /** The next table, or the end of the archive, whose checksum was right. */
  next(): Promise<{ table: TableHead } | { end: End }>
  /** The rows of the table just opened; its closing frame is passed at the end. */
  rows(onEnd: (end: TableEnd) => void): AsyncGenerator<Buffer>
}

const damaged = (cause?: unknown): ArchiveError =>
  new ArchiveError('The archive is damaged or cut off; nothing was imported.', { cause })

const parse = (frame: Frame) => {
  try {
    return JSON.parse(frame.payload.toString('utf8'))
  } catch (error) {
    throw damaged(error)
  }
}

/** Opens a compressed archive. */
export const openArchive = (source: Readable, signal: AbortSignal): ArchiveReader => {
  // Errors of the source arrive through the frames; the callback only keeps them from being thrown
  // twice.
  const frames = readFrames(pipeline(source, createZstdDecompress(), () => {}))
  const hash = createHash('sha256')

  const pull = async (): Promise<Frame> => {
    signal.throwIfAborted()
    const { value, done } = await frames.next().catch((error: unknown) => {
      throw error instanceof ArchiveError ? error : damaged(error)
    })
    if (done) throw damaged()
    // The last frame has the checksum of all before it.
    if (value.type !== frameType.end) hash.update(value.raw)
    return value
  }

  const finish = async (end: End): Promise<{ end: End }> => {
    if (end.sha256 !== hash.digest('hex')) throw damaged()
    const { done } = await frames.next().catch((error: unknown) => {
      throw damaged(error)
    })
    // Bytes after the end are not covered by the checksum.
    if (!done) throw damaged()
    return { end }
  }

  return {
    header: async () => {
      const frame = await pull().catch(() => undefined)
      // An abort must not be reported as a damaged file.
      signal.throwIfAborted()
      if (frame?.type === frameType.header) return frame.payload
      throw new ArchiveError('The file is not a Portolan archive, or its beginning is damaged.')
    },
    next: async () => {
      const frame = await pull()
      if (frame.type === frameType.table) return { table: parse(frame) }
      if (frame.type === frameType.end) return finish(parse(frame))
      throw damaged()
    },
    rows: async function* (onEnd) {
      for (;;) {
        const frame = await pull()
        if (frame.type === frameType.tableEnd) {
          onEnd(parse(frame))
          return
        }
        if (frame.type !== frameType.data) throw damaged()
        yield frame.payload
      }
    },
  }
}
