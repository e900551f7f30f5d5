import { beginCell, comment } from '@ton/core'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { readComment } from './body.ts'

it('reads every comment that fits', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme', maxLength: 150 }), (text) => {
      const written = text.isWellFormed() ? text.replaceAll('\u0000', '') : ''
      expect(readComment(comment(written))).toEqual({ message: written })
    }),
    { numRuns: 20 },
  )
}, 60_000)

it('shows a comment with a zero as no other comment, and its bytes beside it', () => {
  expect(readComment(comment('1\u00002'))).toEqual({ message: '1\ufffd2', message_hex: '310032' })
  expect(readComment(comment('\u0000'))).toEqual({ message: '\ufffd', message_hex: '00' })
  // With that sign and without a zero, the text is what was written.
  expect(readComment(comment('1\ufffd2'))).toEqual({ message: '1\ufffd2' })
})

it('shows only text', () => {
  const op = (value: number) => beginCell().storeUint(value, 32)
  expect(readComment(beginCell().endCell())).toEqual({ message: '' })
  expect(readComment(beginCell().storeUint(1, 8).endCell())).toEqual({ message: '' })
  expect(readComment(op(0).storeUint(0xff, 8).endCell())).toEqual({ message: '' })
  expect(readComment(op(0).storeUint(1, 3).endCell())).toEqual({ message: '' })
  expect(readComment(op(0x2167da4b).endCell())).toEqual({ message: '', encrypted: true })
  expect(readComment(op(0x7362d09c).storeUint(0, 64).endCell())).toEqual({ message: '' })
  const returned = op(0xfffffffe).storeRef(comment('it came back')).endCell()
  expect(readComment(returned)).toEqual({ message: 'it came back' })
})

it('does not follow a text without end', () => {
  let cell = beginCell().storeBuffer(Buffer.alloc(100, 0x61)).endCell()
  for (let depth = 0; depth < 400; depth++)
    cell = beginCell().storeBuffer(Buffer.alloc(100, 0x61)).storeRef(cell).endCell()
  const body = beginCell().storeUint(0, 32).storeRef(cell).endCell()
  expect(readComment(body).message).toHaveLength(4_096)
})

it('cuts a long text between two signs', () => {
  for (const sign of ['é', '€', '😀'])
    for (let before = 4_080; before < 4_100; before++) {
      const whole = 'a'.repeat(before) + sign.repeat(before % 7 === 0 ? 3_000 : 3)
      const { message } = readComment(comment(whole))
      expect(message.isWellFormed()).toBe(true)
      expect(whole.startsWith(message)).toBe(true)
      expect(message.length).toBeGreaterThanOrEqual(Math.min(whole.length, 4_095))
    }
})

it('shows nothing of cells that stand for others', () => {
  const library = beginCell()
    .storeUint(2, 8)
    .storeBuffer(Buffer.alloc(32, 5))
    .endCell({ exotic: true })
  const op = (value: number) => beginCell().storeUint(value, 32)
  for (const body of [
    library,
    op(0).storeRef(library).endCell(),
    op(0xfffffffe).storeRef(library).endCell(),
  ])
    expect(readComment(body)).toEqual({ message: '' })
})
