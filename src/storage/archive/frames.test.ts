import fc from 'fast-check'
import { expect, test } from 'vitest'
import { encodeFrame, readFrames } from './frames.ts'

const cut = (bytes: Buffer, size: number): Buffer[] =>
  Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) =>
    bytes.subarray(at * size, (at + 1) * size),
  )

const read = async (chunks: Buffer[]) => {
  const source = (async function* () {
    yield* chunks
  })()
  return Array.fromAsync(readFrames(source))
}

test('frames come back however the stream is cut', async () => {
  const frame = fc.record({ type: fc.nat(255), payload: fc.uint8Array({ maxLength: 50 }) })
  await fc.assert(
    fc.asyncProperty(fc.array(frame), fc.integer({ min: 1, max: 40 }), async (frames, size) => {
      const bytes = Buffer.concat(
        frames.map(({ type, payload }) => encodeFrame(type, Buffer.from(payload))),
      )
      const found = await read(cut(bytes, size))
      expect(found.map(({ type, payload }) => ({ type, payload: [...payload] }))).toEqual(
        frames.map(({ type, payload }) => ({ type, payload: [...payload] })),
      )
      expect(Buffer.concat(found.map(({ raw }) => raw))).toEqual(bytes)
    }),
  )
})

test('a part of a frame is noticed', async () => {
  const bytes = encodeFrame(1, Buffer.from('hello'))
  await expect(read([bytes.subarray(0, -1)])).rejects.toThrow('cut off')
})

test('an impossible length is refused', async () => {
  const bytes = encodeFrame(1, Buffer.from('hello'))
  bytes.writeUInt32BE(0xffffffff, 1)
  await expect(read([bytes])).rejects.toThrow('too long')
})
