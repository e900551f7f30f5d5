import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Frame, readFrames, writeFrame } from '../testing/ws-frames.ts'
import { createMessageCutter, idOfCut } from './message-cutter.ts'

/** The whole messages of frames, and the control frames between them. */
const messagesOf = (frames: readonly Frame[]): { opcode: number; payload: Buffer }[] => {
  const messages: { opcode: number; payload: Buffer }[] = []
  let open: { opcode: number; payload: Buffer } | undefined
  for (const { opcode, isFinal, payload } of frames) {
    if (opcode >= 8) {
      messages.push({ opcode, payload })
      continue
    }
    expect(opcode === 0).toBe(open !== undefined)
    open = open
      ? { ...open, payload: Buffer.concat([open.payload, payload]) }
      : { opcode, payload: Buffer.from(payload) }
    if (!isFinal) continue
    messages.push(open)
    open = undefined
  }
  return messages
}

const maxBytes = 300
const message = fc.record({
  opcode: fc.constantFrom(1, 2),
  parts: fc.array(fc.integer({ min: 0, max: 260 }), { minLength: 1, maxLength: 4 }),
  hasPing: fc.boolean(),
  fill: fc.nat({ max: 255 }),
})

describe('the message cutter', () => {
  test('passes matching parts and removes others, wherever the bytes are split', () => {
    fc.assert(
      fc.property(fc.array(message, { maxLength: 6 }), fc.array(fc.nat(3_000)), (all, cuts) => {
        const frames = all.flatMap(({ opcode, parts, hasPing, fill }) =>
          parts.flatMap((length, index): Frame[] => {
            const isFinal = index === parts.length - 1
            const payload = Buffer.from(Array.from({ length }, (_, at) => (fill + at) % 256))
            const ping = { opcode: 9, isFinal: true, payload: Buffer.from('ping') }
            const frame = { opcode: index === 0 ? opcode : 0, isFinal, payload }
            return hasPing ? [frame, ping] : [frame]
          }),
        )
        const bytes = Buffer.concat(frames.map(writeFrame))
        const cutIds: { head: Buffer; tail: Buffer }[] = []
        const cut = createMessageCutter({
          ...{ maxBytes, maxDropBytes: 10_000, onEndless: () => expect.unreachable() },
          onCut: (ends) => cutIds.push(ends),
        })
        const places = [0, ...cuts.filter((at) => at < bytes.length).toSorted((a, b) => a - b)]
        const out = Buffer.concat(
          places.flatMap((at, index) => [
            ...cut(Buffer.from(bytes.subarray(at, places[index + 1]))),
          ]),
        )
        const sent = messagesOf(frames)
        const data = sent.filter(({ opcode }) => opcode < 8)
        const fits = data.filter(({ payload }) => payload.length <= maxBytes)
        const tooLarge = data.filter(({ payload }) => payload.length > maxBytes)
        const received = messagesOf(readFrames(out))
        const whole = received.filter(({ opcode }) => opcode < 8)
        // What was passed on of a message before it exceeded the limit is a beginning of it.
        expect(whole.filter((one) => fits.some((own) => own.payload.equals(one.payload)))).toEqual(
          expect.arrayContaining(fits),
        )
        for (const one of whole)
          expect(
            data.some(({ payload }) => payload.subarray(0, one.payload.length).equals(one.payload)),
          ).toBe(true)
        expect(received.filter(({ opcode }) => opcode === 9)).toEqual(
          sent.filter(({ opcode }) => opcode === 9),
        )
        expect(cutIds.map(({ head }) => head)).toEqual(
          tooLarge.map(({ payload }) => payload.subarray(0, 128)),
        )
        // The tail is that of the dropped part, which may be shorter than the whole tail.
        for (const [index, { tail }] of cutIds.entries())
          expect(tooLarge[index]!.payload.subarray(-64).includes(tail)).toBe(true)
      }),
      { numRuns: 500 },
    )
  })

  test('does not copy bytes in which nothing has to change', () => {
    const cut = createMessageCutter({
      ...{ maxBytes, maxDropBytes: 1, onCut: () => {}, onEndless: () => {} },
    })
    const chunk = Buffer.concat([
      writeFrame({ opcode: 1, isFinal: true, payload: Buffer.alloc(200) }),
      writeFrame({ opcode: 9, isFinal: true, payload: Buffer.alloc(0) }),
    ])
    const [only, ...others] = cut(chunk)
    expect([only!.buffer, only!.length, others]).toEqual([chunk.buffer, chunk.length, []])
  })

  test('reports a message without end', () => {
    let isEndless = false
    const cut = createMessageCutter({
      ...{ maxBytes, maxDropBytes: 1_000, onCut: () => expect.unreachable() },
      onEndless: () => {
        isEndless = true
      },
    })
    const frame = writeFrame({ opcode: 1, isFinal: false, payload: Buffer.alloc(900) })
    expect([cut(frame), isEndless]).toEqual([[], false])
    cut(writeFrame({ opcode: 0, isFinal: false, payload: Buffer.alloc(200) }))
    expect(isEndless).toBe(true)
  })
})

test.each([
  ['{"jsonrpc":"2.0","id":12,"result":[', '"}]}', 12],
  ['{"id":7,"result":[', '"}]}', 7],
  ['{"jsonrpc":"2.0","result":[', ']}],"id":34}\n', 34],
  ['{"jsonrpc":"2.0","result":{"id":5,', '}]}', undefined],
  ['{"jsonrpc":"2.0","method":"eth_subscription"', '}}', undefined],
])('the id of %s … %s is %s', (head, tail, id) => {
  expect(idOfCut({ head: Buffer.from(head), tail: Buffer.from(tail) })).toBe(id)
})
