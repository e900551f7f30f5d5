import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { readFrames, writeFrame } from '../testing/ws-frames.ts'
import { createFrameShortener } from './frame-shortener.ts'
import { createStringCutter } from './string-cutter.ts'

const longest = 20
const message = fc.record({
  value: fc.jsonValue({ maxDepth: 3 }),
  long: fc.string({ maxLength: 400 }),
  pieces: fc.array(fc.integer({ min: 0, max: 300 }), { maxLength: 4 }),
  hasPing: fc.boolean(),
})

describe('the frame shortener', () => {
  test('leaves long strings out of every message, wherever its bytes are split', () => {
    fc.assert(
      fc.property(fc.array(message, { maxLength: 5 }), fc.array(fc.nat(3_000)), (all, cuts) => {
        const texts = all.map(({ value, long }) =>
          Buffer.from(JSON.stringify([value, long, 'end'])),
        )
        const ping = { opcode: 9, isFinal: true, payload: Buffer.from('ping') }
        const bytes = Buffer.concat(
          all.flatMap(({ pieces, hasPing }, index) => {
            const text = texts[index]!
            const ends = pieces.map((_, at) => pieces.slice(0, at + 1).reduce((a, b) => a + b, 0))
            const places = [0, ...ends.filter((end) => end <= text.length), text.length]
            return places.slice(1).flatMap((end, at) => {
              const isFinal = at === places.length - 2
              const payload = text.subarray(places[at], end)
              const frame = writeFrame({ opcode: at === 0 ? 1 : 0, isFinal, payload })
              return hasPing ? [frame, writeFrame(ping)] : [frame]
            })
          }),
        )
        const shorten = createFrameShortener({
          ...{ longest, maxBytes: 10_000, onEndless: () => expect.unreachable() },
        })
        const places = [0, ...cuts.filter((at) => at < bytes.length).toSorted((a, b) => a - b)]
        const out = places.flatMap((at, index) => [
          ...shorten(Buffer.from(bytes.subarray(at, places[index + 1]))),
        ])
        const frames = readFrames(Buffer.concat(out))
        const received: Buffer[] = []
        let open: Buffer[] | undefined
        for (const { opcode, isFinal, payload } of frames) {
          if (opcode === 9) {
            expect(payload).toEqual(ping.payload)
            continue
          }
          expect(opcode).toBe(open ? 0 : 1)
          open = [...(open ?? []), payload]
          if (!isFinal) continue
          received.push(Buffer.concat(open))
          open = undefined
        }
        expect(open).toBe(undefined)
        expect(received.map(String)).toEqual(
          texts.map((text) => String(createStringCutter(longest)(text))),
        )
        const pings = all.filter(({ hasPing }) => hasPing).length
        if (pings === 0) expect(frames.some(({ opcode }) => opcode === 9)).toBe(false)
      }),
      { numRuns: 300 },
    )
  })

  test('keeps nothing of a long string, and reports a message without end with its beginning', () => {
    const heads: string[] = []
    const shorten = createFrameShortener({
      ...{ longest, maxBytes: 5_000, onEndless: (head) => heads.push(String(head)) },
    })
    const send = (opcode: number, text: string) =>
      shorten(writeFrame({ opcode, isFinal: false, payload: Buffer.from(text) }))
    const first = send(1, `{"jsonrpc":"2.0","id":7,"result":"${'a'.repeat(2_000)}`)
    expect(Buffer.concat([...first]).length).toBeLessThan(50)
    expect(send(0, 'a'.repeat(2_000))).toEqual([])
    expect(heads).toEqual([])
    send(0, 'a'.repeat(2_000))
    expect(heads[0]).toMatch(/^\{"jsonrpc":"2.0","id":7,"result":"a+$/)
  })
})
